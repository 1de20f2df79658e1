"""The difference of two texts: its changes lead from one to the other, also where most lines are equal to each other."""

from __future__ import annotations

import random
import time

from kernelviz.metrics.line_diff import LineDiff, line_diff, unified


def applied(diff: LineDiff) -> list[str]:
    """A with the changes."""
    result, at = [], 0
    for change in diff.changes:
        result += [*diff.a[at : change.a_first], *diff.b[change.b_first : change.b_end]]
        at = change.a_end
    return [*result, *diff.a[at:]]


def patched(a: list[str], lines: list[str]) -> list[str]:
    """A after a patch in the unified format."""
    result, at = [], 0
    for line in lines[2:]:
        if line.startswith("@@"):
            first, _, count = line.split()[1][1:].partition(",")
            start = int(first) - (1 if count != "0" else 0)
            result += a[at:start]
            at = start
        elif line[0] == "+":
            result.append(line[1:])
        else:
            assert a[at] == line[1:]
            at += 1
            result += [line[1:]] if line[0] == " " else []
    return [*result, *a[at:]]


def test_changes_and_patches_lead_from_a_to_b() -> None:
    chance = random.Random(7)
    for _ in range(200):
        a = [chance.choice("abcdef") for _ in range(chance.randrange(40))]
        b = [line for line in a if chance.random() > 0.2]
        for _ in range(chance.randrange(5)):
            b.insert(chance.randrange(len(b) + 1), chance.choice("abcxyz"))
        diff = line_diff(a, b)
        assert applied(diff) == b
        assert diff.equal + diff.removed == len(a)
        assert diff.equal + diff.added == len(b)
        lines = list(unified(diff, "a", "b"))
        assert (patched(a, lines) if lines else a) == b
        assert bool(lines) == (a != b)


def test_thousands_of_equal_instructions_are_compared_in_seconds() -> None:
    a = [line for n in range(40) for line in (f"LDS R0, [{n}]", *["FFMA R0, R1, R2, R0"] * 120)]
    b = [line for n in range(40) for line in (f"LDS R0, [{n}]", *["FFMA R0, R1, R2, R0"] * 121)]
    began = time.process_time()
    diff = line_diff(a, b)
    assert applied(diff) == b
    assert diff.added - diff.removed == 40
    assert time.process_time() - began < 5
