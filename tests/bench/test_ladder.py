"""The ladders of real ops: which variants are rungs, what sources say of them, which run is shown, and what is measured."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import sample_code
import sample_runs as samples

from kernelviz.bench import Bench, kernel_sources
from kernelviz.bench import ladder as use_case
from kernelviz.bench import ladder_measuring as measuring
from kernelviz.bench.ladder_changes import changes_of, compared_results, sources_of
from kernelviz.bench.ladder_published import declared
from kernelviz.bench.slowdown import explanation_of_pair
from kernelviz.core import BadField, Run, UnknownName, UnknownRun
from kernelviz.core.backends import BACKENDS
from kernelviz.core.code import digest_of
from kernelviz.formats import shipped_runs
from kernelviz.metrics.comparison import compare
from kernelviz.metrics.ladder import steps_by_backend
from kernelviz.metrics.ladder_summary import summary_of
from kernelviz.metrics.library_comparison import OWN
from kernelviz.metrics.slowdown_findings import LostInCode
from kernelviz.ops import catalogue
from kernelviz.store import Store
from kernelviz.text.code_changes import describe_cause, describe_change
from kernelviz.text.ladder import describe_published
from kernelviz.text.ladder_changes import describe_code_changes, describe_source_changes, describe_unread_code
from kernelviz.text.ladder_facts import facts_of_step
from kernelviz.text.ladder_markdown import excerpts
from kernelviz.text.ladder_summary import describe_summary
from kernelviz.text.slowdown import describe_likeliest

H200_MATMUL = "h200-matmul"
LADDER_WITH_CODE = "h200-matmul-ladder"
RUNS = Path(__file__).parents[2] / "docs" / "runs"


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(Store.open(tmp_path), (samples.CPU, samples.H200))
    yield made
    made.close()


@pytest.mark.parametrize("name", catalogue())
def test_every_op_has_rungs_in_the_order_of_its_variants(name: str) -> None:
    op = catalogue()[name]
    sizes = {axis.name: 64 for axis in op.axes}
    problem = msgspec.structs.replace(
        shipped_runs.load("h200-add").plan.problems[0], op=name, sizes=sizes, dtype=op.dtypes[0]
    )
    variants = declared(op, problem)
    order = [v.name for v in variants]
    assert order == [v.name for v in op.variants]
    for backend, steps in steps_by_backend([v for v in variants if v.backend in OWN]).items():
        assert BACKENDS[backend].written_here
        places = [order.index(step.name) for step in steps]
        assert places == sorted(places)
        slow = [step.only_when_named for step in steps]
        assert slow == sorted(slow, reverse=True), "what is measured only when named begins a ladder, or is beside it"
    assert all(v.idea for v in variants)


def test_the_steps_of_the_bf16_ladder_have_the_published_gains_of_the_claims() -> None:
    op = catalogue()["matmul"]
    variants = {v.name: v for v in declared(op, op.problem({"m": 4096, "n": 4096, "k": 4096}, "bf16"))}
    (wide,) = variants["cuda_wgmma_wide"].published
    assert (round(wide.factor, 2), wide.over, wide.source) == (
        1.22,
        "cuda_wgmma_specialised",
        "aleksagordic.com/blog/matmul",
    )
    assert wide.problem is not None
    (value,) = variants["cuda_wgmma"].published_values
    assert (value.value, value.unit) == (317e12, "flop/s")
    elsewhere = {v.name: v for v in declared(op, op.problem({"m": 512, "n": 512, "k": 512}, "bf16"))}
    assert elsewhere["cuda_wgmma"].published_values == ()  # a rate is of one size; a gain is stated with its own
    assert elsewhere["cuda_wgmma_wide"].published == (wide,)


def test_a_gain_that_the_catalogue_and_a_claim_have_is_stated_once_with_the_number_format_of_the_source() -> None:
    op = catalogue()["matmul"]
    sizes = {"m": 4096, "n": 4096, "k": 4096}
    for dtype, elsewhere in (("fp32", False), ("bf16", True)):
        problem = op.problem(sizes, dtype)
        variants = {v.name: v for v in declared(op, problem)}
        (gain,) = variants["cuda_tiled"].published
        assert (gain.factor, gain.over, gain.device) == (1.5, "cuda_naive", "NVIDIA RTX A6000")
        assert gain.problem is not None
        assert (gain.problem.dtype != problem.dtype) is elsewhere


def test_the_recorded_ladder_of_an_h200_is_shown_where_nothing_was_measured(bench: Bench) -> None:
    assert use_case.default_op(bench) == "matmul"
    default = use_case.default_run(bench, "matmul")
    assert default is not None
    assert default.id == "h200-matmul-ladder"
    scale = use_case.default_run(bench, "scale")
    assert scale is not None
    assert scale.device == "NVIDIA H200"


def test_a_run_of_this_machine_with_as_many_rungs_comes_first_and_one_with_fewer_does_not(bench: Bench) -> None:
    whole = msgspec.structs.replace(bench.load("h200-add"), id="mine", created_at="2026-11-27T00:00:00+00:00")
    few = [r for r in whole.results if r.variant in ("torch_eager", "cuda_scalar", "cuda_vec16")]
    bench.history.add(msgspec.structs.replace(whole, id="few", results=tuple(few)))
    default = use_case.default_run(bench, "add")
    assert default is not None
    assert default.shipped
    bench.history.add(whole)
    default = use_case.default_run(bench, "add")
    assert default is not None
    assert default.id == "mine"
    assert use_case.default_op(bench) == "add"
    assert [run.id for run in use_case.offered(bench, "add")][:2] == ["mine", "few"]


def test_a_run_without_two_rungs_of_one_backend_and_a_tuning_are_not_offered(bench: Bench) -> None:
    run = bench.load("h200-add")
    one = [r for r in run.results if r.variant in ("torch_eager", "cuda_scalar", "triton_block")]
    bench.history.add(msgspec.structs.replace(run, id="one", results=tuple(one)))
    assert "one" not in [summary.id for summary in use_case.offered(bench, "add")]


def test_the_problem_with_published_numbers_is_shown_first(bench: Bench) -> None:
    run = bench.load(H200_MATMUL)
    assert use_case.default_problem(bench, run).sizes["m"] == 4096
    key = "matmul bf16 m=512 n=512 k=512"
    assert use_case.problem_named(run, key).key == key
    with pytest.raises(UnknownName, match="512"):
        use_case.problem_named(run, "matmul bf16 m=513 n=512 k=512")
    with pytest.raises(UnknownRun):
        use_case.ladder_of_stored(bench, "no-such-run")


def test_the_bf16_ladder_of_an_h200_shows_its_source_without_stored_code(bench: Bench) -> None:
    """The kernel files of the package are those that the run names, by their digests."""
    without = use_case.ladder_of_stored(bench, "h100-80gb-hbm3-matmul")
    unknown = changes_of(bench, without)
    assert not unknown.code_known
    unread = str(describe_unread_code(unknown, without.problem))
    assert "the run was stored without the machine code of these" in unread
    assert "kernelviz ladder matmul --measure --size m=" in unread
    ladder = use_case.ladder_of_stored(bench, H200_MATMUL)
    of = ladder.of("cuda")
    assert of is not None
    assert [step.variant for step in of.steps][:3] == ["cuda_naive", "cuda_tiled", "cuda_wmma"]
    assert len(of.correct) == 13
    summary = summary_of(ladder, of)
    assert summary is not None
    assert (summary.first.variant, summary.best.variant) == ("cuda_naive", "cuda_wgmma_tma_store")
    changes = changes_of(bench, ladder)
    named = {a.digest for r in ladder.run.results for c in r.code or () for a in c.artifacts if a.name == "wgmma.cu"}
    if not all(map(kernel_sources.has, named)):  # the kernel has changed since the run
        pytest.skip("the package has another wgmma.cu than the run")
    assert str(describe_source_changes(changes.sources["cuda_wgmma_wide"])) == (
        "the source is the same; only this macro differs: COLUMNS 128 → 256."
    )
    tiled = changes.sources["cuda_tiled"]
    assert tiled.files[0].kernels == ("matmul_naive", "matmul_tiled")


def test_a_kernel_file_counts_only_for_its_own_digest() -> None:
    file = Path(kernel_sources.__file__).parents[1] / "ops" / "matmul" / "cuda.cu"
    digest = digest_of(file.read_bytes())
    assert kernel_sources.content(digest) == file.read_bytes()
    assert kernel_sources.content(digest_of(b"another")) is None
    assert not kernel_sources.has(digest_of(b"another"))


def test_the_machine_code_of_two_rungs_is_compared_by_the_verdict_on_their_times(bench: Bench) -> None:
    run = sample_code.run_with_cubins()
    problem = run.plan.problems[0]
    results = [
        samples.timed(problem, r.variant, 0.5) if r.variant == "cuda_scalar" else r
        for r in run.results
        if r.problem == problem
    ]
    codes = {r.variant: r for r in run.results if r.problem == problem}
    slower = tuple(
        msgspec.structs.replace(
            r, code=codes[r.variant].code, kernels=codes[r.variant].kernels, backend=codes[r.variant].backend
        )
        for r in results
    )
    ladder = use_case.ladder_of(bench, msgspec.structs.replace(run, results=slower), problem)
    changes = changes_of(bench, ladder)
    code = changes.code["cuda_vec16"]
    assert code.faster == "b"
    assert str(describe_code_changes(code)).startswith("16-byte loads and stores replaced 4-byte ones")
    assert changes.code_known
    assert changes_of(bench, ladder, machine_code=False).code == {}


def test_only_techniques_that_the_device_has_are_called_new(bench: Bench) -> None:
    ladder = use_case.ladder_of_stored(bench, H200_MATMUL)
    steps = {step.variant: step for of in ladder.ladders for step in of.steps}
    assert steps["triton_tuned"].new_techniques == frozenset()  # tcgen05 is of another architecture
    assert steps["triton_descriptors"].new_techniques == {"tma"}
    assert steps["cuda_wgmma"].new_techniques == {"tma", "wgmma"}


def test_each_step_is_compared_with_the_step_that_its_gain_refers_to(bench: Bench) -> None:
    ladder = use_case.ladder_of_stored(bench, H200_MATMUL)
    pairs = {after.variant: before.variant for before, after in compared_results(ladder)}
    assert pairs["cuda_tiled"] == "cuda_naive"
    assert "cuda_naive" not in pairs
    assert pairs["triton_tuned"] == "triton_grouped"


def test_records_have_a_line_for_each_rung_with_gain_and_published_gain(bench: Bench) -> None:
    ladder = use_case.ladder_of_stored(bench, H200_MATMUL)
    records = use_case.records(ladder, changes_of(bench, ladder, machine_code=False))
    wide = next(r for r in records if r["variant"] == "cuda_wgmma_wide")
    assert (wide["over"], wide["verdict"], wide["status"]) == ("cuda_wgmma_specialised", "faster", "faster")
    assert wide["gain_low"] < wide["gain"] < wide["gain_high"]
    assert wide["published"][0]["factor"] == pytest.approx(1.2249, abs=1e-3)
    cuda = msgspec.json.decode(use_case.as_json(ladder, changes_of(bench, ladder, machine_code=False), "cuda"))
    assert [r["variant"] for r in cuda] == [r["variant"] for r in records if r["backend"] == "cuda"]
    assert len(cuda) > 10


def test_the_plan_measures_all_rungs_and_libraries_and_what_begins_a_ladder_although_it_is_slow(bench: Bench) -> None:
    sizes = {"m": "4096", "n": "4096", "k": "4096"}
    plan = measuring.plan_of(bench, "matmul", "cuda:0", sizes=sizes, dtype="fp32", backend="cuda")
    assert plan.variants[0] == "torch_eager"
    assert "cuda_rows_across_threads" in plan.variants
    assert "cuda_published" not in plan.variants
    assert "cuda_wgmma" not in plan.variants  # it has no fp32 kernel
    assert not any(v.startswith("triton") for v in plan.variants)
    assert plan.baseline == "torch_eager"


def test_one_rung_is_measured_with_the_one_it_is_compared_with_and_the_baseline(bench: Bench) -> None:
    run = bench.load(H200_MATMUL)
    problem = run.plan.problems[3]
    plan = measuring.plan_of_problem(bench, problem, "cuda:0", variant="cuda_wgmma_wide")
    assert plan.variants == ("torch_eager", "cuda_wgmma_specialised", "cuda_wgmma_wide")
    assert plan.problems == (problem,)
    other = measuring.plan_of_problem(bench, problem, "cuda:0", variant="cuda_wgmma_wide", over="cuda_wgmma")
    assert other.variants == ("torch_eager", "cuda_wgmma", "cuda_wgmma_wide")


def test_what_cannot_be_measured_is_refused_with_the_reason(bench: Bench) -> None:
    with pytest.raises(BadField, match="no rung of it can run there: cuda_naive on AMD EPYC"):
        measuring.plan_of(bench, "transpose", "cpu", sizes={"m": "64", "n": "64"}, backend="cuda")
    with pytest.raises(BadField, match="up to 8"):
        measuring.plan_of(bench, "matmul", "cuda:0", sizes={"m": "64", "n": "64", "k": "64"}, variant="cuda_gemv")
    with pytest.raises(UnknownName, match="transpose"):
        measuring.plan_of(bench, "transposed", "cuda:0")
    with pytest.raises(UnknownName, match="cuda_naive"):
        measuring.plan_of(bench, "transpose", "cuda:0", variant="cuda_naiv")
    with pytest.raises(UnknownName):
        measuring.plan_of(bench, "transpose", "cuda:0", backend="torch")


def test_default_sizes_are_the_largest_usual_ones(bench: Bench) -> None:
    op = catalogue()["transpose"]
    sizes = measuring.default_sizes(op, samples.H200)
    assert set(sizes) == set(op.axis_names)
    assert measuring.plan_of(bench, "transpose", "cuda:0").problems[0].sizes == {a: int(s) for a, s in sizes.items()}


def test_the_documented_ladder_run_opens_as_a_file(bench: Bench) -> None:
    run = use_case.opened_run(bench, str(RUNS / "h200-matmul-bf16-ladder.kvz"))
    ladder = use_case.ladder_of(bench, run)
    of = ladder.main
    assert isinstance(run, Run)
    assert of is not None
    assert of.backend == "cuda"
    assert len(of.correct) == 9
    steps = {step.variant: step for step in of.steps}
    assert steps["cuda_naive"].kind == "absent"
    said = [str(text) for text in describe_published(steps["cuda_wgmma_cluster"], ladder.problem)]
    assert said == [
        "1.11×, the source's kernel of this rung over its kernel of cuda wgmma persistent, on NVIDIA H100 80GB HBM3 "
        "(aleksagordic.com/blog/matmul). The step between them, "
        "barriers with fewer arrivals (704 TFLOP/s), has no variant of its own here"
    ]


def test_compare_says_of_each_slower_and_faster_rung_what_the_ladder_says(bench: Bench) -> None:
    """The likeliest reason is the change that the machine code shows as a cause, or none is named."""
    run = bench.load(LADDER_WITH_CODE)
    facts = bench.history.code_facts
    facts.reading(run).wait(60)
    ladder = use_case.ladder_of_stored(bench, LADDER_WITH_CODE)
    changes = changes_of(bench, ladder)
    told: dict[str, set[bool]] = {"slower": set(), "faster": set()}
    for step in (step for of in ladder.ladders for step in of.steps):
        if step.gain is None or step.gain.kind not in told:
            continue
        assert step.over is not None
        compared = compare(run, run, variant_a=step.over.name, variant_b=step.variant)
        found = explanation_of_pair(facts, compared, compared.pairs[0])
        assert found is not None
        cause = changes.code[step.variant].cause
        named = found.likeliest
        assert (named.change if isinstance(named, LostInCode) else None) == cause, step.variant
        if step.gain.kind == "faster" and cause is not None:
            assert str(describe_cause(changes.code[step.variant])).endswith(f"is faster: {describe_change(cause)}.")
            assert str(describe_likeliest(found)) == f"The likeliest reason: {describe_change(cause)}."
        told[step.gain.kind].add(cause is None)
    assert told["slower"] == told["faster"] == {True, False}, (
        "some have a cause in the machine code, and some have none"
    )


def test_the_facts_of_a_rung_do_not_contradict_each_other(bench: Bench) -> None:
    bench.history.code_facts.reading(bench.load(LADDER_WITH_CODE)).wait(60)
    ladder = use_case.ladder_of_stored(bench, LADDER_WITH_CODE)
    of, changes = ladder.main, changes_of(bench, ladder)
    assert of is not None
    told = {step.variant: dict(facts_of_step(ladder, of, step, changes, ladder.metric)) for step in of.steps}

    persistent = told["cuda_wgmma_persistent"]
    assert persistent["Machine code"].startswith("both rungs run the same machine code, so only its launch can differ")
    assert persistent["Source"].endswith(
        "only this macro differs: PERSISTENT 0 → 1; the compiled code is the same, so that only the launch can differ."
    )
    assert told["cuda_wgmma_hilbert"]["Configuration"].endswith("group=0; compiled with GROUP 1.")
    by_size = told["cuda_wgmma_by_size"]
    assert by_size["Configuration"].endswith("chosen by the sizes; compiled with COLUMNS 256, CLUSTER 2, STAGES 4.")
    assert "only these macros differ: GROUP 1 → 8, SPLIT_K 0 → 1." in by_size["Source"]
    assert "(spills) 0 → 35, none of them in an iteration of the main loop" in by_size["Machine code"]
    wgmma = told["cuda_wgmma"]
    assert "TMA replaced cp.async, which should make it faster" in wgmma["Machine code"]
    assert "Gain here" not in wgmma
    assert wgmma["Loss here"].startswith("▼ 1.168×")
    assert told["cuda_wmma"]["New technique"] == "warp-level MMA.", "wmma is another instruction of PTX than mma.sync"
    summary = str(describe_summary(summary_of(ladder, of), ladder.metric))
    assert (
        "with the last 2 together it is 1.012× (1.009–1.017) slower than with cuda wgmma tma store, compared directly in the "
        "same rounds" in summary
    )


def test_a_step_that_changes_macros_only_shows_the_lines_that_read_them(bench: Bench) -> None:
    ladder = use_case.ladder_of_stored(bench, LADDER_WITH_CODE)
    source = sources_of(bench, ladder)["cuda_wgmma_specialised"]
    assert source.same_files
    (excerpt,) = excerpts(source)
    assert excerpt.heading == "wgmma.cu: the lines that read SPECIALISED (0 → 1)"
    assert not excerpt.of_diff
    assert any("#if SPECIALISED" in line for line in excerpt.lines)
    assert len(excerpt.lines) == len(source.macro_lines)
