"""The difference of two texts, line by line. CLI, Python and page show the same one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

MOST_COMPARISONS = 4_000_000
"""Pairs of equal lines beyond which lines that are repeated often are not compared one by one: 4,096 equal lines on each side are
16 million pairs, which take several seconds. The difference is correct then, too, but it may be longer than it needs to be."""


@dataclass(frozen=True, slots=True)
class LineChange:
    """Lines of A that are replaced by lines of B: from the first one up to before the last one, both counted from 0."""

    a_first: int
    a_end: int
    b_first: int
    b_end: int


@dataclass(frozen=True, slots=True)
class LineDiff:
    """Two texts and their changes, in order. `equal` lines are in both."""

    a: tuple[str, ...]
    b: tuple[str, ...]
    changes: tuple[LineChange, ...]

    @property
    def removed(self) -> int:
        """Lines that only A has."""
        return sum(change.a_end - change.a_first for change in self.changes)

    @property
    def added(self) -> int:
        """Lines that only B has."""
        return sum(change.b_end - change.b_first for change in self.changes)

    @property
    def equal(self) -> int:
        return len(self.a) - self.removed


def line_diff(a: Sequence[str], b: Sequence[str]) -> LineDiff:
    """The difference of two texts.

    >>> diff = line_diff(["x", "y", "z"], ["x", "w", "z", "v"])
    >>> [(c.a_first, c.a_end, c.b_first, c.b_end) for c in diff.changes], diff.removed, diff.added, diff.equal
    ([(1, 2, 1, 2), (3, 3, 3, 4)], 1, 2, 2)
    """
    start = _common(a, b)
    end = _common(a[start:][::-1], b[start:][::-1])
    inside_a, inside_b = a[start : len(a) - end], b[start : len(b) - end]
    counts = Counter(inside_b)
    many = sum(counts[line] for line in inside_a) > MOST_COMPARISONS
    matcher = SequenceMatcher(None, inside_a, inside_b, autojunk=many)
    changes = tuple(
        LineChange(start + a_first, start + a_end, start + b_first, start + b_end)
        for tag, a_first, a_end, b_first, b_end in matcher.get_opcodes()
        if tag != "equal"
    )
    return LineDiff(tuple(a), tuple(b), changes)


def _common(a: Sequence[str], b: Sequence[str]) -> int:
    """How many lines are the same from the beginning on."""
    count = 0
    for first, second in zip(a, b, strict=False):
        if first != second:
            break
        count += 1
    return count


def unified(diff: LineDiff, name_a: str, name_b: str, context: int = 3) -> Iterator[str]:
    """The difference in the unified format, without line ends; nothing if there is none.

    >>> list(unified(line_diff(["x", "y"], ["x", "z"]), "a", "b"))
    ['--- a', '+++ b', '@@ -1,2 +1,2 @@', ' x', '-y', '+z']
    """
    if not diff.changes:
        return
    yield f"--- {name_a}"
    yield f"+++ {name_b}"
    for group in _groups(diff.changes, context):
        a_first, a_end = max(0, group[0].a_first - context), min(len(diff.a), group[-1].a_end + context)
        b_first, b_end = max(0, group[0].b_first - context), min(len(diff.b), group[-1].b_end + context)
        yield f"@@ -{_range(a_first, a_end)} +{_range(b_first, b_end)} @@"
        at = a_first
        for change in group:
            yield from (f" {line}" for line in diff.a[at : change.a_first])
            yield from (f"-{line}" for line in diff.a[change.a_first : change.a_end])
            yield from (f"+{line}" for line in diff.b[change.b_first : change.b_end])
            at = change.a_end
        yield from (f" {line}" for line in diff.a[at:a_end])


def _groups(changes: Sequence[LineChange], context: int) -> Iterator[list[LineChange]]:
    """Changes that have at most twice the context between them are one group."""
    group: list[LineChange] = []
    for change in changes:
        if group and change.a_first - group[-1].a_end > 2 * context:
            yield group
            group = []
        group.append(change)
    yield group


def _range(first: int, end: int) -> str:
    count = end - first
    start = first + 1 if count else first
    return str(start) if count == 1 else f"{start},{count}"
