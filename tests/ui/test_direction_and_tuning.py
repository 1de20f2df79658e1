"""The form, the link and the sidebar's words where an op has two directions and a variant something to tune."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest
import sample_runs as samples
import sample_tunings as tunings
from op_with_backward import ops
from rehearsed_bench import RehearsedBench

from kernelviz.core.problem import Problem
from kernelviz.ui.bench import link
from kernelviz.ui.bench.form import choices, default_form, form_of, reconciled
from kernelviz.ui.bench.plan_form import describe_tunings


@pytest.fixture
def bench() -> RehearsedBench:
    return RehearsedBench((samples.H200, samples.CPU), ops=ops)


def test_an_op_with_one_direction_has_no_choice_and_writes_none(bench: RehearsedBench) -> None:
    form = default_form(bench, "copy")
    assert form.direction is None
    assert "direction" not in link.write(form, None)
    assert {p.direction for p in form.plan(bench).problems} == {"forward"}
    said = link.read({"op": "copy", "direction": "backward"}, bench).complaints
    assert [c.field for c in said] == ["direction"]
    assert link.read({"op": "copy", "direction": "forward"}, bench).complaints == ()


def test_a_link_holds_the_direction(bench: RehearsedBench) -> None:
    form = replace(default_form(bench, "add"), variants=("torch_eager", "tunable"))
    assert form.direction == "forward"
    assert link.write(form, None)["direction"] == "forward"
    back = link.read({**link.write(form, None), "direction": "backward"}, bench)
    assert back.complaints == ()
    assert back.form == replace(form, direction="backward")
    assert {p.direction for p in back.form.plan(bench).problems} == {"backward"}
    odd = link.read({"op": "add", "direction": "bakward"}, bench)
    assert odd.form.direction == "backward"
    assert [c.field for c in odd.complaints] == ["direction"]


def test_a_variant_without_that_pass_says_so_and_is_dropped(bench: RehearsedBench) -> None:
    reasons = {c.variant.name: c.reason for c in choices(bench, ops()["add"], "cuda:0", "fp32", None, "backward")}
    assert reasons["cuda_scalar"] == "has no backward pass"
    form = replace(default_form(bench, "add"), variants=("torch_eager", "cuda_scalar"))
    assert reconciled(replace(form, direction="backward"), form, bench).variants == ("torch_eager",)


def test_another_op_gets_its_own_direction(bench: RehearsedBench) -> None:
    form = replace(default_form(bench, "add"), direction="backward")
    assert reconciled(replace(form, op="copy"), form, bench).direction is None
    copy = default_form(bench, "copy")
    assert reconciled(replace(copy, op="add"), copy, bench).direction == "forward"


def test_a_run_of_the_backward_pass_reopens_as_such(bench: RehearsedBench) -> None:
    plan = replace(default_form(bench, "add"), direction="backward").plan(bench)
    run = samples.run([], op="add", sizes=({"n": 64},), dtype="fp32")
    form = form_of(msgspec.structs.replace(run, plan=plan), bench)
    assert form is not None
    assert form.direction == "backward"


def test_a_tuning_reopens_as_its_variant(bench: RehearsedBench) -> None:
    run = tunings.run()
    made = msgspec.structs.replace(
        run.plan,
        variants=("tunable[block=64,warps=4]", "tunable[block=128,warps=4]"),
        baseline="tunable[block=64,warps=4]",
    )
    form = form_of(msgspec.structs.replace(run, plan=made), bench)
    assert form is not None
    assert (form.variants, form.baseline) == (("tunable",), "tunable")
    found = link.read({"op": "add", "variants": "tunable[block=128,warps=8],torch_eager"}, bench)
    assert set(found.form.variants) == {"torch_eager", "tunable"}
    assert [c.field for c in found.complaints] == ["variants"]


def test_the_sidebar_says_what_is_tuned_for_these_sizes(bench: RehearsedBench) -> None:
    form = replace(
        default_form(bench, "add"), variants=("torch_eager", "tunable"), sizes={"n": "64"}, sizes_from="values"
    )
    variants = [v for v in ops()["add"].variants if v.name in form.variants]
    assert describe_tunings(bench, form, variants) == ["tunable: default configuration, block=64, warps=4"]
    digest = next(v for v in variants if v.name == "tunable").source_digest()
    made = tunings.tuning(
        problem=Problem(op="add", sizes={"n": 64}, dtype="fp32"), variant="tunable", source_digest=digest
    )
    bench.history._store.tunings.put(made)
    assert describe_tunings(bench, form, variants) == ["tunable: tuned, block=256, warps=4 (run tuned-1)"]
    several = replace(form, sizes={"n": "64,128"})
    assert describe_tunings(bench, several, variants) == [
        "tunable: tuned at 1 of 2 sizes, default configuration at the others"
    ]
    assert describe_tunings(bench, replace(form, sizes={"n": "128"}), variants)[0].startswith("tunable: default")
    bench.history._store.tunings.put(tunings.tuning(problem=made.problem, variant="tunable", source_digest="0" * 16))
    (stale,) = describe_tunings(bench, form, variants)
    assert "default configuration" in stale
    assert "its source has changed since" in stale
    assert describe_tunings(bench, replace(form, sizes={"n": "oh"}), variants) == []
