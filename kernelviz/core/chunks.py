"""A long list in pieces, for what takes only so many at a time."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

_Item = TypeVar("_Item")


def parts(items: Sequence[_Item], most: int) -> Iterator[Sequence[_Item]]:
    """
    >>> list(parts((1, 2, 3, 4, 5), 2)), list(parts([], 2))
    ([(1, 2), (3, 4), (5,)], [])
    """
    for start in range(0, len(items), most):
        yield items[start : start + most]
