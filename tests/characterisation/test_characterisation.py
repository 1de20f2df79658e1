"""The facts of this checkout are those of 8fa93f3, but for the changes that are listed: the fast sections of compare.py."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import turns
from characterisation import sampling
from characterisation.compare import Difference, Intended, compare, complaints, differences, without
from characterisation.facts import STORED, flat, read_stored
from characterisation.sections import FAST, FULL


def test_the_facts_are_those_that_are_stored() -> None:
    """Every section; of runs, files and refusals a quarter at each commit. `compare.py --fast` compares all of them."""
    _, wrong = compare(Path(__file__).parents[2], sorted(FAST), part=turns.seed())
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
    assert complaints([], (Intended("runs/*", "because"),), ("runs",), ("runs/two",)) == [], "not all was collected"
    part = without({**stored, "wire": 1}, ("runs/one",))
    assert differences(part, {"runs": {}, "wire": 1}) == [], "what is left out is not compared"
    assert differences(part, {"runs": {}}), "what is not left out is missed"


def test_every_entry_has_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    names, seen = [f"run {number}" for number in range(9)], list[str]()
    for part in range(7, 7 + sampling.PARTS):
        monkeypatch.setattr(sampling, "part", part)
        monkeypatch.setattr(sampling, "left_out", [])
        ours = sampling.taken("runs", names)
        assert 2 <= len(ours) <= 3
        assert {*sampling.left_out} == {f"runs/{name}" for name in names} - {f"runs/{name}" for name in ours}
        seen += ours
    assert sorted(seen) == names
    monkeypatch.setattr(sampling, "part", None)
    assert sampling.taken("runs", names) == names
