"""Which tests of the GPU suite are on record, without a GPU: what changes a key, and what a part leaves out."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import gpu_report
import on_record
import passed_record
import pytest
from cases import Way, variants, ways

from kernelviz.ops import Op, Variant, catalogue
from kernelviz.ops.catalog import digest as source_digest

FACTS = {"device": "NVIDIA H200", "compute_capability": [9, 0], "driver": "580.159", "cuda": "13.0", "commit": "c1"}
PACKAGES = {"torch": "2.11.0", "triton": "3.6.0", "nvidia-cudnn-cu13": "9.1", "pytest": "9.0"}
CARD = on_record.card_of(FACTS, PACKAGES)
CACHED = (on_record.code_of, on_record._of_op, on_record._of_variant)
Keys = dict[str, dict[str, str | None]]


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    yield
    for one in CACHED:
        one.cache_clear()


def keys(*ops: str) -> Keys:
    """The keys of both parts: by op, variant and way, and by op."""
    few = [(o, v) for o, v in variants() if o.name in ops]
    return {
        "kernels": {
            f"{o.name} {v.name} {w}": on_record.key_of("kernels", {"op": o, "variant": v, "way": w}, CARD)
            for o, v in few
            for w in ways(o, v)
        },
        "one_click": {name: on_record.key_of("one_click", {"name": name}, CARD) for name in ops},
    }


def changed(before: Keys, after: Keys) -> dict[str, set[str]]:
    return {part: {test for test in of if of[test] != after[part][test]} for part, of in before.items()}


def with_addition(monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
    """Whoever reads this file finds one more definition in it."""
    assert file.is_file()
    addition = "\nother = 1\n" if file.suffix == ".py" else "\nint other;\n"
    read, read_source = passed_record.read_text, source_digest.read_source
    monkeypatch.setattr(on_record, "read_text", lambda path: read(path) + (addition if path == file else ""))

    def closure() -> source_digest.Closure:
        return source_digest.Closure(lambda path: read_source(path) + (addition if path == file else ""))

    monkeypatch.setattr(on_record, "Closure", closure)
    for one in CACHED:
        one.cache_clear()


def test_every_test_of_a_variant_and_every_op_has_a_key_of_its_own() -> None:
    found = keys(*catalogue())
    for of in found.values():
        assert None not in of.values()
        assert len(set(of.values())) == len(of)
    told = [on_record.declared(op, on_record.TOLD) for op in catalogue().values()]
    assert " at 0x" not in repr(told), "an address is another one in each process"


@pytest.mark.parametrize(
    ("file", "parts"),
    [
        ("kernelviz/measure/gate/check.py", {"kernels", "one_click"}),
        ("kernelviz/ops/kernels/nvrtc.py", {"kernels", "one_click"}),
        ("kernelviz/ops/catalog/op.py", {"kernels", "one_click"}),
        ("kernelviz/core/dtypes.py", {"kernels", "one_click"}),
        ("tests/ops/checking.py", {"kernels"}),
        ("tests/gpu/test_kernels.py", {"kernels"}),
        ("kernelviz/measure/timing/rounds.py", {"one_click"}),
        ("kernelviz/measure/timing/tracing_cost.py", {"one_click"}),
        ("kernelviz/worker/child.py", {"one_click"}),
        ("kernelviz/worker/supervisor.py", {"one_click"}),
        ("tests/gpu/judged.py", {"one_click"}),
        ("kernelviz/text/failures.py", set()),
        ("kernelviz/ui/bench/form.py", set()),
        ("kernelviz/ops/catalog/choice.py", set()),
        ("tests/gpu/parts.py", set()),
    ],
)
def test_a_change_of_what_binds_judges_or_measures_finds_no_test_on_record(
    file: str, parts: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = keys("scale", "sum")
    with_addition(monkeypatch, on_record.ROOT / file)
    after = keys("scale", "sum")
    assert changed(before, after) == {part: set(of) if part in parts else set() for part, of in before.items()}


def test_a_change_of_a_kernel_or_a_reference_is_that_of_its_op(monkeypatch: pytest.MonkeyPatch) -> None:
    before = keys("scale", "sum")
    with_addition(monkeypatch, on_record.ROOT / "kernelviz/ops/scale/cuda.cu")
    found = changed(before, keys("scale", "sum"))
    assert found["one_click"] == {"scale"}
    assert found["kernels"]
    assert {test.split()[0] for test in found["kernels"]} == {"scale"}
    assert not any("triton" in test for test in found["kernels"])
    monkeypatch.undo()
    bound = on_record.ROOT / "kernelviz/ops/reduction/reference.py"
    text = bound.read_text()
    monkeypatch.setattr(
        on_record,
        "Closure",
        lambda: source_digest.Closure(
            lambda path: text.replace("return ", "return 1 * ") if path == bound else path.read_text()
        ),
    )
    for one in CACHED:
        one.cache_clear()
    found = changed(before, keys("scale", "sum"))
    assert found["one_click"] == {"sum"}
    assert found["kernels"] == {test for test in before["kernels"] if test.startswith("sum ")}


@pytest.mark.parametrize(
    ("facts", "packages", "same"),
    [
        ({}, {}, True),
        ({"driver": "580.200", "commit": "c2"}, {"pytest": "9.1"}, True),
        ({"driver": "590.1"}, {}, False),
        ({"device": "NVIDIA H100 80GB HBM3"}, {}, False),
        ({"cuda": "13.1"}, {}, False),
        ({}, {"torch": "2.12.0"}, False),
        ({}, {"triton": "3.7.1"}, False),
        ({}, {"nvidia-cudnn-cu13": "9.2"}, False),
    ],
)
def test_the_card_and_the_versions_are_in_the_key(facts: dict[str, Any], packages: dict[str, str], same: bool) -> None:
    other = on_record.card_of({**FACTS, **facts}, {**PACKAGES, **packages})
    asked = {"name": "scale"}
    assert (on_record.key_of("one_click", asked, other) == on_record.key_of("one_click", asked, CARD)) is same
    assert on_record.key_of("one_click", asked, on_record.card_of({"device": None}, PACKAGES)) is None
    assert on_record.key_of("timing", asked, CARD) is None, "what judges times is asked each time"


OP, VARIANT = next((o, v) for o, v in variants("triton") if o.name == "scale")
WAYS = list(ways(OP, VARIANT))


def item(nodeid: str, **params: object) -> Any:
    return SimpleNamespace(nodeid=nodeid, callspec=SimpleNamespace(params=params), user_properties=[])


def kernels_items() -> list[Any]:
    return [item(f"k[{way}]", op=OP, variant=VARIANT, way=way) for way in WAYS]


def entry_of(op: Op, variant: Variant, way: Way, **changes: Any) -> dict[str, Any]:
    told: dict[str, Any] = {
        **{"op": op.name, "variant": variant.name, "dtype": way.dtype, "compute": way.compute, "passed": True},
        **{"worst_of_bound": 0.5, "cases": 3, "device": "NVIDIA H200", "direction": way.direction, "failures": []},
        "source_digest": way.variant(op, variant).source_digest(),
    }
    return told | changes


class Configuration(SimpleNamespace):
    def getoption(self, name: str, default: bool) -> bool:
        return bool(name in self.given) or default


def chosen(
    monkeypatch: pytest.MonkeyPatch, report: Path, part: str, items: list[Any], *given: str, **changed: Any
) -> list[str]:
    """The names of the tests that are run, with these facts of the machine and these options."""
    monkeypatch.setattr(on_record, "environment", lambda: {**FACTS, **changed})
    monkeypatch.setattr(on_record, "_card", lambda: on_record.card_of({**FACTS, **changed}, PACKAGES))
    monkeypatch.setattr(on_record, "report_file", lambda device: report)
    keyword = "a" if "-k" in given else ""
    config = Configuration(
        given=given, option=SimpleNamespace(keyword=keyword), args=["tests/gpu"], stash=pytest.Stash()
    )
    run = [one.nodeid for one in on_record.chosen(part, items, cast("pytest.Config", config))]
    left = {one.nodeid for one in items} - set(run)
    assert config.stash[on_record.LEFT_OUT] == left
    return run


def write_report(file: Path, part: str, items: list[Any], kernels: list[dict[str, Any]], **told: Any) -> None:
    tests = {
        one.nodeid: {"outcome": "passed", "seconds": 1.0, **{k: str(v) for k, v in one.user_properties}, **told}
        for one in items
    }
    file.write_text(json.dumps({"device": "NVIDIA H200", "parts": {part: {"tests": tests}}, "kernels": kernels}))


def test_what_passed_with_this_code_on_this_card_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = tmp_path / "report.json"
    monkeypatch.setattr(on_record, "in_sample", lambda key, seed: False)
    first = kernels_items()
    every = [one.nodeid for one in first]
    assert chosen(monkeypatch, report, "kernels", first) == every, "nothing is on record"
    assert all(dict(one.user_properties).keys() == {"key"} for one in first)
    entries = [entry_of(OP, VARIANT, way) for way in WAYS]
    write_report(report, "kernels", first, entries)
    assert set(gpu_report.read(report)) != set()
    assert chosen(monkeypatch, report, "kernels", kernels_items()) == []
    assert chosen(monkeypatch, report, "kernels", kernels_items(), driver="580.200") == []
    for given in ("--all", "-k", "--whole-sweep"):
        assert chosen(monkeypatch, report, "kernels", kernels_items(), given) == every
    assert chosen(monkeypatch, report, "kernels", kernels_items(), driver="590.1") == every
    for outcome in ("failed", "skipped", "unfinished"):
        write_report(report, "kernels", first, entries, outcome=outcome)
        assert chosen(monkeypatch, report, "kernels", kernels_items()) == every
    write_report(report, "kernels", first, [entry_of(OP, VARIANT, WAYS[0]), *entries[2:]])
    assert chosen(monkeypatch, report, "kernels", kernels_items()) == every[1:2], "a variant without its entry"
    write_report(report, "kernels", first, [entry_of(OP, VARIANT, WAYS[0], source_digest="old"), *entries[1:]])
    assert chosen(monkeypatch, report, "kernels", kernels_items()) == every[:1]


def test_the_comparison_with_ncu_is_run_unless_every_op_is_on_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report, names = tmp_path / "report.json", ["add", "scale"]
    monkeypatch.setattr(on_record, "in_sample", lambda key, seed: False)

    def items() -> list[Any]:
        return [
            *(item(f"c[{name}]", name=name) for name in names),
            SimpleNamespace(nodeid="ncu", user_properties=[]),
        ]

    first = items()
    assert chosen(monkeypatch, report, "one_click", first) == ["c[add]", "c[scale]", "ncu"]
    write_report(report, "one_click", first[1:], [])
    assert chosen(monkeypatch, report, "one_click", items()) == ["c[add]", "ncu"]
    write_report(report, "one_click", first, [])
    assert chosen(monkeypatch, report, "one_click", items()) == []


def test_one_in_eighty_is_run_all_the_same_and_others_at_each_commit() -> None:
    passed: Mapping[str, str] = {f"test[{number}]": f"key {number}" for number in range(800)}
    runs = [passed.keys() - on_record.left_out(passed, f"{number:040x}") for number in range(100)]
    assert 500 < sum(map(len, runs)) < 1500
    assert len(set().union(*runs)) > 400
    assert on_record.left_out(passed, "") == set(passed), "no commit is known"


def test_a_key_that_cannot_be_made_leaves_the_test_to_be_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*_: object) -> str:
        raise OSError

    monkeypatch.setattr(on_record, "_of_op", refuses)
    assert on_record.key_of("one_click", {"name": "add"}, CARD) is None
