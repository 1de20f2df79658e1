"""The checklist of a run in the terminal, in Python and on the page Bench: the same points, over the same use case."""

from __future__ import annotations

import json

import msgspec
import pytest
import sample_runs as samples
from open_page import open_page
from rehearsed_bench import RehearsedBench

import kernelviz as kv
import kernelviz.bench
from kernelviz.bench.checklist import checked_cases, records
from kernelviz.cli.commands import invoke
from kernelviz.metrics.checklist import CHECKS
from kernelviz.text.checklist import NAMES, RULES


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> RehearsedBench:
    made = RehearsedBench((samples.H200, samples.CPU), roofs=samples.H200_ROOFS, stored=(samples.mixed(),))
    monkeypatch.setattr(kernelviz.bench, "current", lambda: made)
    return made


def test_terminal_and_python_have_the_same_points(bench: RehearsedBench, capsys: pytest.CaptureFixture[str]) -> None:
    run = samples.mixed()
    assert invoke(["checklist", run.id, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads(json.dumps(records(checked_cases(bench, run))))
    assert len(printed) == len(CHECKS) * len(run.results)
    frame = kv.checklist(run.id)
    assert list(frame.tick) == [one["tick"] for one in printed]
    assert set(frame.tick) == {"passed", "not_passed", "unknown"}
    assert invoke(["checklist", run.id]) == 0
    shown = capsys.readouterr().out
    assert all(f"{NAMES[name]}: " in shown for name in CHECKS)
    assert f"run {run.id}, measured {run.created_at}" in shown
    assert run.environment.device.name in shown
    one = kv.checklist(run.id, run.plan.variants[0])
    assert set(one.variant) == {run.plan.variants[0]}
    assert invoke(["checklist", run.id, "--variant", "nobody"]) == 2
    assert "no variant 'nobody'" in capsys.readouterr().err


def test_without_a_run_the_newest_is_taken_or_the_remedy_named(
    bench: RehearsedBench, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["checklist"]) == 0
    printed = capsys.readouterr()
    assert "Launch cost" in printed.out
    assert "this is the newest run" in printed.err
    mixed = samples.mixed()
    bare = msgspec.structs.replace(mixed, environment=msgspec.structs.replace(mixed.environment, roofs=()))
    monkeypatch.setattr(kernelviz.bench, "current", lambda: RehearsedBench((samples.CPU,), stored=(bare,)))
    assert invoke(["checklist"]) == 0
    assert "the roofs of NVIDIA H200 are not measured" in capsys.readouterr().err
    assert invoke(["checklist", "/nowhere/run.json"]) == 2
    assert "there is no such file" in capsys.readouterr().err
    monkeypatch.setattr(kernelviz.bench, "current", lambda: RehearsedBench((samples.CPU,)))
    assert invoke(["checklist"]) == 2
    assert "kernelviz run" in capsys.readouterr().err


def test_the_tab_shows_every_variant_and_the_rules_of_one(bench: RehearsedBench) -> None:
    run = samples.mixed()
    wrong = next(r for r in run.results if r.accuracy is not None and not r.accuracy.passed)
    size = next(iter(wrong.problem.sizes))
    test = open_page(
        {"run": run.id, "checks_of": wrong.variant, "at": str(wrong.problem.sizes[size])}, state={"tables": "Checklist"}
    )
    assert not test.exception
    table = next(d.value for d in test.dataframe if "Launch cost" in d.value)
    assert len(table) == len({r.variant for r in run.results if r.problem == run.results[0].problem})
    assert all(cell[0] in "✓✕?" for name in NAMES.values() for cell in table[name])
    said = "\n".join(str(m.value) for m in test.markdown).replace("\\", "")
    assert test.query_params.get("checks_of") in (wrong.variant, None)
    assert all(RULES[name].split(":")[0].split(" (")[0] in said for name in CHECKS)
    assert test.selectbox(key="checks_of").value == wrong.variant
    assert "the result is wrong, so its time does not count" in said
