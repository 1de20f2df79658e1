"""Grouping of results by what they have in common."""

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


def grouped(values: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """The values by key, in the order in which the keys and the values of each first occur.

    >>> grouped(["b1", "a1", "b2"], key=lambda name: name[0])
    {'b': ['b1', 'b2'], 'a': ['a1']}
    """
    groups: dict[K, list[T]] = {}
    for value in values:
        groups.setdefault(key(value), []).append(value)
    return groups
