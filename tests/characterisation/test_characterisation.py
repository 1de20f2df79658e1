"""The facts of this checkout are those of 8fa93f3, but for the changes that are listed: the fast sections of compare.py."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import turns
from characterisation.compare import Difference, Intended, compare, complaints, differences
from characterisation.facts import STORED, flat, read_stored
from characterisation.sections import FAST, FULL


def test_the_facts_are_those_that_are_stored() -> None:
    """Half of the sections at each commit; `compare.py --fast` compares all of them."""
    _, wrong = compare(Path(__file__).parents[2], sorted(FAST)[turns.seed() % 2 :: 2])
    assert not wrong, "\n".join(wrong[:60])


def test_every_section_is_stored_and_holds_facts() -> None:
    assert {path.name.removesuffix(".json.gz") for path in STORED.iterdir()} == {*FAST, *FULL}
    for name in (*FAST, *FULL):
        assert sum(1 for _ in flat(read_stored(name))) > 50, name


def changed(facts: Any, path: str, value: Any) -> Any:
    """A copy of the facts with one of them changed."""
    made = copy.deepcopy(facts)
    node = made
    *parents, last = path.split("/")
    for key in parents:
        node = node[int(key)] if isinstance(node, list) else node[key]
    node[int(last) if isinstance(node, list) else last] = value
    return made


def test_a_changed_fact_is_found_and_must_be_listed() -> None:
    stored = {"runs": {"one": {"verdict": ["faster", "same"], "time_s": [1.5, None]}}}
    assert differences(stored, stored) == []
    assert differences(stored, changed(stored, "runs/one/time_s/0", 1.5 * (1 + 1e-14))) == []
    for path, value in (("verdict/1", "slower"), ("time_s/0", 1.5 * (1 + 1e-11)), ("time_s/1", 2.0), ("verdict", [])):
        found = differences(stored, changed(stored, f"runs/one/{path}", value))
        assert complaints(found, (), ("runs",)), path
        assert complaints(found, (Intended("runs/one/*", "because"),), ("runs",)) == []
        assert complaints(found, (Intended("runs/two/*", "because"),), ("runs",))
    recorded = [Difference("shipped/one/verdict", "faster", "slower")]
    assert complaints(recorded, (Intended("runs/*", "because"),), ("shipped",)) == [], "listed for planted runs"
    assert complaints(recorded, (Intended("charts/*", "because"),), ("shipped",))
    assert complaints([], (Intended("runs/*", "because"),), ("runs",)), "a listed change must occur"
    assert complaints([], (Intended("shipped/*", "because"),), ("runs",)) == [], "its section was not collected"
