"""Which runs, commands and fields a comparison takes: all of them, or a part, which is another one at each commit."""

from __future__ import annotations

from collections.abc import Iterable

PARTS = 4
"""A comparison of a part takes one of so many entries."""
part: int | None = None
"""Which part is taken; None: everything."""
left_out: list[str] = []
"""The paths of the entries that were not taken, as differences are printed."""


def taken(path: str, names: Iterable[str]) -> list[str]:
    """The names under this path that are taken. The others are noted in `left_out`."""
    all_of_them = list(names)
    if part is None:
        return all_of_them
    ours = all_of_them[part % PARTS :: PARTS]
    left_out.extend(f"{path}/{name}" for name in all_of_them if name not in ours)
    return ours
