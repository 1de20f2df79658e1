"""The page Ladder, run by AppTest from the real entry script over a real store and the shipped runs."""

from __future__ import annotations

import msgspec
import pytest
import sample_code
import sample_runs as samples
from open_page import charts, open_page
from streamlit.testing.v1 import AppTest

import kernelviz.bench
from kernelviz.bench import Bench
from kernelviz.bench import ladder_measuring as measuring
from kernelviz.bench.code_facts import CodeFacts, FactsReading
from kernelviz.core import Plan, Run
from kernelviz.store import Store

H200_MATMUL = "h200-matmul-ladder"
KEY = "matmul bf16 m=4096 n=4096 k=4096"


def opened(**params: str) -> AppTest:
    return open_page(params, "ladder")


def words(test: AppTest) -> str:
    said = (str(e.value) for kind in ("markdown", "caption", "warning", "error", "info") for e in getattr(test, kind))
    return "\n".join(said).replace("\\", "")


def param(test: AppTest, name: str) -> str | None:
    found = test.query_params.get(name)
    return found[0] if isinstance(found, list) else found


def ladder_run(id: str = "mine", **more: object) -> Run:
    """A ladder of `add` with a wrong rung, on the machine of the tests."""
    (problem,) = samples.problems("add", [{"n": 2**20}], "fp32")
    results = [
        samples.timed(problem, "torch_eager", 0.9, again=True, device=samples.CPU),
        samples.timed(problem, "cuda_scalar", 0.2, device=samples.CPU),
        samples.failed(problem, "cuda_vec16", "wrong"),
        samples.timed(problem, "cuda_vec16_unrolled", 0.8, device=samples.CPU),
    ]
    made = samples.run(
        results, id=id, op="add", sizes=[problem.sizes], dtype="fp32", shares={}, device=samples.CPU, roofs=()
    )
    return msgspec.structs.replace(made, **more)


@pytest.fixture
def with_gpu(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """The use cases on a machine with an H200; nothing is measured."""
    made = Bench(Store.open(tmp_path_factory.mktemp("store")), (samples.H200, samples.CPU))
    monkeypatch.setattr(kernelviz.bench, "current", lambda: made)
    return made


def test_the_first_visit_shows_the_recorded_ladder_of_an_h200_and_what_is_missing(bench: Bench) -> None:
    bench.history.code_facts.reading(bench.load(H200_MATMUL)).wait(60)
    test = opened()
    said = words(test)
    assert (param(test, "run"), param(test, "problem"), param(test, "ladder")) == (H200_MATMUL, KEY, "cuda")
    assert (
        "CUDA C++: 13 rungs from 4.12 to 790 TFLOP/s, 192×; the largest gain is cuda wmma (new technique: warp-level MMA), 23.7×"
        in said
    )
    assert "No ladder of matmul can be measured on AMD EPYC 9654: 39 need CUDA." in said
    assert "**Machine code**: wgmma 64×128×16 → 64×256×16" in said
    assert "**Gain here**: ▲ 1.179× (1.173–1.186) faster than cuda wgmma specialised." in said
    published = (
        "1.22×, the source's kernel of this rung over its kernel of cuda wgmma specialised, on NVIDIA H100 80GB HBM3"
    )
    assert f"**Published**: {published}" in said
    (chart,) = charts(test)
    names = [trace.get("name") for trace in chart.figure["data"]]
    assert "torch eager, library: 794.3 TFLOP/s ± 0.4 %" in names
    assert any(str(name).startswith("roof 797 TFLOP/s") for name in names)
    # A point says what it is compared with, in few lines; the labels on the right have a margin as wide as they are.
    hovers = {
        trace["name"]: trace["hovertext"][0].split("<br>") for trace in chart.figure["data"] if trace.get("customdata")
    }
    assert hovers["cuda wgmma"][2:] == [
        "▼ 1.168× (1.158–1.175) slower than cuda mma.", "Against torch eager: ▼ 1.82× slower (1.81–1.85)", "✓ good",
    ]  # fmt: skip
    assert max(map(len, hovers.values())) <= 6
    labels = [note["text"] for note in chart.figure["layout"]["annotations"]]
    assert chart.figure["layout"]["margin"]["r"] > 5.5 * max(map(len, labels))
    assert not [b for b in test.button if str(b.key).startswith("measure_step")]


def test_without_stored_code_the_page_says_which_command_stores_it_and_links_a_run_that_has_it(bench: Bench) -> None:
    recorded = bench.load("h200-softmax")
    bare = [msgspec.structs.replace(result, code=msgspec.UNSET) for result in recorded.results]
    bench.history.add(msgspec.structs.replace(recorded, id="bare", results=tuple(bare)))
    said = words(test := opened(run="bare"))
    assert "no machine code was captured when this was measured. `kernelviz ladder softmax --measure --size m=" in said
    assert "on a machine with a GPU measures the ladder and stores its code" in said
    assert "Stored runs that show what changed in the code" in said
    linked = [link.proto.query_string for link in test.get("page_link") if "ladder" in link.proto.label]
    assert linked == ["run=h200-matmul-ladder"]


def test_another_ladder_metric_size_and_rung_are_in_the_address_and_open_again(bench: Bench) -> None:
    test = opened(run="h100-80gb-hbm3-matmul")
    assert "What changed in the machine code is unknown: the run was stored without the machine code of these" in words(
        test
    )
    test.segmented_control(key="ladder_backend").set_value("triton").run()
    test.segmented_control(key="ladder_metric").set_value("time").run()
    test.selectbox(key="ladder_problem").set_value("matmul bf16 m=8192 n=8192 k=8192").run()
    test.selectbox(key="ladder_chosen_triton").set_value("triton_persistent").run()
    said = words(test)
    assert (param(test, "ladder"), param(test, "metric"), param(test, "rung")) == (
        "triton",
        "time",
        "triton_persistent",
    )
    assert "Triton: 6 rungs from 1.39 to 1.36 ms" in said
    assert "**triton tuned → triton persistent**" in said
    again = opened(**{name: param(test, name) or "" for name in test.query_params})
    assert words(again) == said


def test_a_wrong_rung_is_shown_as_wrong_and_gives_no_gain(bench: Bench) -> None:
    bench.history.add(ladder_run())
    test = opened(run="mine")
    said = words(test)
    assert ":red-badge[✕ wrong]" in said
    assert (
        "faster than cuda scalar, the last rung before it with a correct time (cuda vec16 between them has none)"
        in said
    )
    assert "○ not measured: this run does not measure it at this size." in said
    (chart,) = charts(test)
    marks = {t["name"]: t["marker"]["symbol"] for t in chart.figure["data"] if t["mode"] == "markers"}
    assert marks["cuda vec16"] == "x-thin"
    line = next(t for t in chart.figure["data"] if t["mode"] == "lines" and t["hoverinfo"] == "skip")
    assert line["y"] == [0, 2]


def test_real_machine_code_says_what_changed_and_why_it_helps(bench: Bench) -> None:
    run = sample_code.run_with_cubins()
    problem = run.plan.problems[0]
    slow = tuple(
        msgspec.structs.replace(
            samples.timed(problem, r.variant, 0.5), code=r.code, kernels=r.kernels, backend=r.backend
        )
        if r.variant == "cuda_scalar" and r.problem == problem
        else r
        for r in run.results
    )
    bench.history.add(msgspec.structs.replace(run, results=slow))
    bench.history.code_facts.reading(bench.load("with-cubins")).wait(60)
    said = words(opened(run="with-cubins", problem=problem.key, ladder="cuda"))
    assert "**Machine code**: 16-byte loads and stores replaced 4-byte ones" in said
    assert "**Why**: Wider accesses keep more bytes in flight" in said


def test_while_machine_code_is_read_each_rung_says_so_where_it_will_be(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CodeFacts, "reading", lambda self, run: FactsReading())  # one that does not end
    said = words(opened())
    assert said.count("**Machine code**: it is being read …") == 12  # nothing changed at the first of 13 rungs
    rung = said[said.index("13 · cuda wgmma by size") :]
    assert rung.index("**Loss here**") < rung.index("it is being read …") < rung.index("**Source**")
    assert "Reading the machine code of all rungs takes about five seconds" in said


@pytest.fixture
def no_transpose(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """No run of `transpose` comes with the package."""
    every = bench.history.shipped()
    kept = tuple(run for run in every if run.op != "transpose")
    assert len(kept) < len(every)
    monkeypatch.setattr(type(bench.history), "shipped", lambda self, search="": kept)
    return bench


def test_an_op_without_a_run_says_what_to_do(no_transpose: Bench) -> None:
    test = opened(op="transpose")
    said = words(test)
    assert param(test, "op") == "transpose"
    assert "No run shows the ladder of transpose**, and this machine cannot measure it" in said
    links = {link.proto.query_string for link in test.get("page_link")}
    assert {"op=add", "op=matmul", "op=norm_activation"} <= links
    assert charts(test) == []


def test_a_run_or_an_op_that_is_not_here_is_named_and_another_is_shown(bench: Bench) -> None:
    test = opened(run="no-such-run")
    assert "No run **no-such-run** on this server" in words(test)
    assert len(charts(test)) == 1
    assert "the op 'matmol' has no ladder: showing matmul" in words(opened(op="matmol"))
    assert "problem 'x' is unknown" in words(opened(run=H200_MATMUL, problem="x"))


def test_a_run_that_shows_no_ladder_says_so(bench: Bench) -> None:
    run = ladder_run("one")
    one = tuple(r for r in run.results if r.variant in ("torch_eager", "cuda_scalar"))
    bench.history.add(msgspec.structs.replace(run, results=one))
    assert "shows no ladder: it has fewer than two rungs" in words(opened(run="one"))


def test_another_op_in_the_box_shows_its_run(no_transpose: Bench) -> None:
    test = opened()
    test.selectbox(key="ladder_op").set_value("softmax").run()
    assert param(test, "run") == "h200-softmax"
    test.selectbox(key="ladder_op").set_value("transpose").run()
    assert (param(test, "run"), param(test, "op")) == (None, "transpose")
    test.selectbox(key="ladder_op").set_value("matmul").run()
    assert (param(test, "run"), param(test, "op")) == (H200_MATMUL, None)
    assert not test.error


def test_the_page_opens_with_the_run_in_hand(bench: Bench) -> None:
    test = open_page({}, "ladder", state={"run_in_hand": "h200-softmax"})
    assert param(test, "run") == "h200-softmax"


def test_the_buttons_measure_the_ladder_or_one_rung_and_the_page_shows_the_run(
    with_gpu: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans: list[Plan] = []

    def start(_bench: Bench, plan: Plan, **_more: object) -> str:
        plans.append(plan)
        run = ladder_run(f"started-{len(plans)}")
        return with_gpu.history.add(
            msgspec.structs.replace(run, plan=msgspec.structs.replace(run.plan, variants=plan.variants))
        )

    monkeypatch.setattr(measuring, "start", start)
    test = opened(op="add")
    test.button(key="measure_ladder").click().run()
    assert {"torch_eager", "torch_compile", "cuda_scalar", "triton_block"} <= set(plans[0].variants)
    assert param(test, "run") == "started-1"
    test.button(key="measure_step_cuda_vec16_unrolled").click().run()
    assert plans[1].variants == ("torch_eager", "cuda_scalar", "cuda_vec16_unrolled")  # the one between them is wrong
    assert (param(test, "run"), param(test, "measured")) == ("started-1", "started-2")
    assert "**Measured on AMD EPYC 9654**: " in words(test)


def test_another_size_that_cannot_be_read_is_an_error_and_loses_nothing(with_gpu: Bench) -> None:
    test = opened(op="add")
    test.text_input(key="ladder_size_add_n").set_value("many").run()
    test.button(key="measure_ladder_at").click().run()
    assert any("many" in str(error.value) for error in test.error)
    assert test.text_input(key="ladder_size_add_n").value == "many"


def test_a_run_that_was_interrupted_can_be_resumed(bench: Bench) -> None:
    bench.history.add(ladder_run("half", status="interrupted"))
    test = opened(run="half")
    assert "This run was interrupted" in words(test)
    assert [b.label for b in test.button if b.key == "resume_ladder"] == ["Resume"]


@pytest.mark.parametrize(
    ("kind", "beginning"), [("Page that opens offline", b"<!doctype"), ("Markdown", b"# Ladder"), ("JSON", b"[\n")]
)
def test_the_ladder_is_saved_as_a_file(bench: Bench, kind: str, beginning: bytes) -> None:
    test = opened(run="h200-add")
    test.radio(key="ladder_format").set_value(kind).run()
    test.button(key="save_ladder").click().run()
    state = test.session_state["save_ladder_saving"]
    assert state.data.startswith(beginning)
    assert not test.error
