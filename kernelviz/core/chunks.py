"""A long list in pieces, for what takes only so many at a time."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


def parts(values: Sequence[T], most: int) -> Iterator[Sequence[T]]:
    """
    >>> list(parts((1, 2, 3, 4, 5), 2)), list(parts([], 2))
    ([(1, 2), (3, 4), (5,)], [])
    """
    for start in range(0, len(values), most):
        yield values[start : start + most]
