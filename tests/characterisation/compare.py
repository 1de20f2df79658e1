"""Compare a checkout with the stored facts of commit 8fa93f3: the characterisation of "behaviour and figures stay".

One command, from the folder of the repository::

    python tests/characterisation/compare.py

It takes 100 s of processor time, about three minutes on two idle cores; with ``--fast`` (the sections that CI compares) 20 s.

It prints each difference as ``section/path: stored -> now`` and ends with 1 if one is not listed in ``intended.toml``, or if a
listed one does not occur.

What is compared: everything typed that the product derives from shipped and planted runs (figures, verdicts, winners, measurement
quality, limiters, charts, exported files), names on the wire, the catalogue, commands, exit codes, refusals, planted faults.
What is not: text for people (stored as ``<text>``, so only its loss is seen), times measured here, and digests of
sources as they are now (those in saved documents are compared).

To list an intended change, add to ``intended.toml``::

    [[change]]
    where = "commands/ladders/*"      # path as printed; * stands for any characters
    before = 0                        # optional: the stored value, exactly
    after = 2                         # optional: the value now, exactly
    reason = "The command has a new name; the old one is an alias."

A module or attribute that moved: edit its function in ``adapter.py``; stored facts stay. ``collect.py CHECKOUT --store`` stores
facts anew, which is right only for facts that nobody has stored yet.

fixtures.jsonl.gz holds documents written by 8fa93f3: the runs of tests/sample_runs.py, sample_nights.py, compared_runs.py,
sample_tunings.py, sample_inspections.py, planted_limits.py and the cases of tests/metrics/test_trust.py, with samples cut to six
digits and mostly to four of each block; and the files of other tools in tests/formats/peers.
"""

from __future__ import annotations

import argparse
import math
import sys
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1]
if __name__ == "__main__":
    sys.path.insert(0, str(TESTS))

from characterisation.collect import LEFT_OUT, collect  # noqa: E402
from characterisation.facts import HERE, flat, read_stored  # noqa: E402

CLOSE = 1e-12
"""Relative difference of two numbers that count as equal: the order of a sum may change with the processor."""
_MISSING = "<missing>"
_SAME_FACTS = {"shipped": "runs", "shipped_charts": "charts", "shipped_files": "files"}
"""Sections of recorded runs, and those of planted runs that have the same facts: a change is listed once for both."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A fact that is another one now. `before` or `after` is ``<missing>`` where only one side has it."""

    path: str
    before: Any
    after: Any

    def __str__(self) -> str:
        return f"{self.path}: {self.before!r} -> {self.after!r}"


@dataclass(frozen=True, slots=True)
class Intended:
    """A change that somebody made on purpose."""

    where: str
    reason: str
    before: Any = None
    after: Any = None

    def covers(self, one: Difference) -> bool:
        section, _, rest = one.path.partition("/")
        paths = (one.path, f"{_SAME_FACTS.get(section, section)}/{rest}")
        return (
            any(fnmatchcase(path, self.where.replace("[", "[[]")) for path in paths)
            and self.before in (None, one.before)
            and self.after in (None, one.after)
        )


def same(before: Any, after: Any) -> bool:
    """Equal values; numbers may differ by one part in 10^12.

    >>> same(1.0, 1.0 + 1e-15), same(1, True), same(0.5, 0.6)
    (True, False, False)
    """
    if type(before) is bool or type(after) is bool or not isinstance(before, int | float):
        return type(before) is type(after) and bool(before == after)
    return isinstance(after, int | float) and math.isclose(before, after, rel_tol=CLOSE, abs_tol=0.0)


def differences(stored: Mapping[str, Any], now: Mapping[str, Any]) -> list[Difference]:
    """Every leaf that is not the same, in the order of the stored facts.

    >>> [str(d) for d in differences({"a": [1, 2]}, {"a": [1, 3], "b": 4})]
    ['a/1: 2 -> 3', "b: '<missing>' -> 4"]
    """
    before, after = dict(flat(stored)), dict(flat(now))
    paths = dict.fromkeys((*before, *after))
    pairs = (Difference(p, before.get(p, _MISSING), after.get(p, _MISSING)) for p in paths)
    return [one for one in pairs if not same(one.before, one.after)]


def intended() -> tuple[Intended, ...]:
    """The changes listed in ``intended.toml``."""
    listed = tomllib.loads((HERE / "intended.toml").read_text())
    return tuple(Intended(**one) for one in listed.get("change", ()))


def _section(one: Difference) -> str:
    return one.path.partition("/")[0]


def _same(section: str) -> tuple[str, ...]:
    """The sections whose listed changes count for this one."""
    return (section, _SAME_FACTS.get(section, section))


def complaints(
    found: Sequence[Difference], listed: Iterable[Intended], sections: Iterable[str], left_out: Iterable[str] = ()
) -> list[str]:
    """Differences that nobody listed, and listed changes of these sections that do not occur.

    In sections of which entries are left out, whether a listed change occurs is not known.

    >>> one = Difference("a/1", 2, 3)
    >>> complaints([one], [Intended("a/*", "a reason")], ["a"])
    []
    >>> complaints([one], [], ["a"]), complaints([], [Intended("a/*", "a reason")], ["a"])
    (['not listed: a/1: 2 -> 3'], ['listed, but it does not occur: a/*'])
    """
    every, collected = list(listed), set(sections) - {path.partition("/")[0] for path in left_out}
    asked = [i for i in every if i.where.split("/")[0] in collected]
    # Neighbours are mostly covered by the same entry, and an entry covers only what is of its section: 1 s instead of 12 s.
    of_section = {
        section: [i for i in every if i.where.partition("/")[0] in _same(section)] for section in map(_section, found)
    }
    unlisted, last = [], None
    for one in found:
        if last is None or not last.covers(one):
            last = next((i for i in of_section[_section(one)] if i.covers(one)), None)
        if last is None:
            unlisted.append(f"not listed: {one}")
    idle = [f"listed, but it does not occur: {i.where}" for i in asked if not any(map(i.covers, found))]
    return unlisted + idle


def without(facts: Mapping[str, Any], paths: Iterable[str]) -> dict[str, Any]:
    """The facts without the entries at these paths.

    >>> without({"runs": {"one": 1, "two/b": 2}, "wire": 3}, ["runs/two/b", "runs/three"])
    {'runs': {'one': 1}, 'wire': 3}
    """
    gone = set(paths)

    def kept(node: Any, path: str, depth: int) -> Any:
        if not isinstance(node, Mapping) or depth == 0:
            return node
        inner = ((key, value, f"{path}/{key}" if path else key) for key, value in node.items())
        return {key: kept(value, place, depth - 1) for key, value, place in inner if place not in gone}

    made: dict[str, Any] = kept(facts, "", 3)
    return made


def compare(checkout: Path, sections: Sequence[str], part: int | None = None) -> tuple[list[Difference], list[str]]:
    """All differences of a checkout from the stored facts, and what is wrong with them. `part`: only of so many entries
    (`sampling`)."""
    now = collect(checkout, sections, part)
    left_out = now.pop(LEFT_OUT)
    stored = without({name: read_stored(name) for name in sections}, left_out)
    found = differences(stored, now)
    return found, complaints(found, intended(), sections, left_out)


def main() -> int:
    from characterisation.sections import FAST, FULL

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path, nargs="?", default=TESTS.parent, help="default: this repository")
    parser.add_argument("--fast", action="store_true", help="only the sections that CI compares")
    parser.add_argument("--sections", help="only these, separated by commas")
    parser.add_argument("--most", type=int, default=60, help="print at most so many differences")
    given = parser.parse_args()
    sections = given.sections.split(",") if given.sections else list(FAST if given.fast else FAST | FULL)
    found, wrong = compare(given.checkout, sections)
    sys.stdout.write("\n".join([*wrong[: given.most], f"{len(found)} differences, {len(wrong)} complaints\n"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
