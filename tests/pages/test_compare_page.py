"""The Compare page, run by AppTest from the real entry script over a real store and the shipped runs."""

from __future__ import annotations

import time

import compared_runs as runs
import msgspec
import pandas as pd
import pytest
import sample_code as code
import sample_runs as samples
from open_page import charts, open_page
from streamlit.testing.v1 import AppTest

from kernelviz.bench import Bench
from kernelviz.bench.code_differences import code_difference
from kernelviz.bench.comparison import compare_stored
from kernelviz.core import Result
from kernelviz.formats import encode


@pytest.fixture
def both(bench: Bench) -> Bench:
    bench.history.add(runs.before())
    bench.history.add(runs.after({"triton_persistent": 1.05, "triton_block_per_row": 0.9}))
    return bench


def opened(**params: str) -> AppTest:
    return open_page(params, "compare")


def words(test: AppTest) -> str:
    said = (str(e.value) for kind in ("markdown", "caption", "warning", "error", "info") for e in getattr(test, kind))
    return "\n".join(said).replace("\\", "")


def table(test: AppTest) -> pd.DataFrame:
    return test.dataframe[-1].value  # that of all cases; the one of slow cases is before it


def param(test: AppTest, name: str) -> str | None:
    found = test.query_params.get(name)
    return found[0] if isinstance(found, list) else found


def tiles(test: AppTest) -> dict[str, str]:
    return {m.label: str(m.value).replace("\\", "") for m in test.metric}


def test_two_runs_give_verdicts_worst_first(both: Bench) -> None:
    test = opened(a="before", b="after")
    assert tiles(test)["▼ Slower"] == "6 of 12 slower"
    assert tiles(test)["▲ Faster"] == "6 of 12 faster"
    assert tiles(test)["Mean time, B relative to A"] == "1.029× faster"
    shown = table(test)
    assert list(shown["Verdict"]) == ["▼ slower"] * 6 + ["▲ faster"] * 6 + ["≈ identical"] * 6
    assert shown["Time B / time A"][0] == pytest.approx(1.05, abs=0.003)
    assert len(charts(test)) == 2
    said = words(test)
    assert "among 6 cases with identical code" in said
    assert "None: both sides have the same device, driver, library versions and method." in said
    assert str(test.selectbox(key="case").value).endswith("| triton_persistent")
    # Why: the source has changed, and the sample's code is a library's, so that spills are unknown. Nothing else differs.
    assert "##### Where B is slower" in said
    assert "6 cases of B are slower. The likeliest reasons: kernels (6)." in said
    assert "**Why is B slower here?** The likeliest reason: the source of the variant has changed." in said
    assert ":red[**≠ Kernels**]: the source of the variant has changed" in said
    assert ":orange[**? Spills**]: unknown: a side has no machine code here" in said
    assert ":gray[**= Device and versions**]: the same device, driver and versions" in said
    test.selectbox(key="case").set_value(next(c for c in test.selectbox(key="case").options if "▲" in c)).run()
    said = words(test)
    assert "Why is B slower here?" not in said
    assert "**Why is B faster here?** The likeliest reason: the source of the variant has changed." in said
    assert ":green[**≠ Kernels**]: the source of the variant has changed" in said
    assert ":gray[**= Error**]: not smaller than in A" in said
    test.selectbox(key="case").set_value(next(c for c in test.selectbox(key="case").options if "≈" in c)).run()
    assert "Why is B" not in words(test)


def test_what_differs_is_said_in_red_and_in_words(bench: Bench) -> None:
    bench.history.add(runs.before())
    bench.history.add(runs.after(method={"clock": "sustained"}, device={"driver": "600", "uuid": "GPU-22222222-1"}))
    said = words(opened(a="before", b="after"))
    assert ":red[**≠ clock mode**: burst in A, sustained in B (no verdict)]" in said
    assert ":red[**≠ driver**: 580.159 in A, 600 in B]" in said
    assert ":red[**≠ card (same model)**: GPU-00000000… in A, GPU-22222222… in B]" in said
    assert "⊘ not comparable: the clock mode differs: burst in A, sustained in B" in said
    assert "Not comparable: the clock mode differs: burst in A, sustained in B (18 cases)." in said


def test_the_address_reopens_the_page_as_it_was(both: Bench) -> None:
    asked = {"a": "before", "b": "after", "variant_a": "torch_eager", "variant_b": "triton_persistent", "l2": "warm"}
    test = opened(**asked)
    key = test.selectbox(key="case").options
    assert len(key) == 6
    test.selectbox(key="case").set_value(table_key(3)).run()
    shown = {name: param(test, name) or "" for name in (*asked, "case")}
    assert shown == asked | {"case": table_key(3)}
    again = opened(**shown)
    assert table(again).equals(table(test))
    assert again.selectbox(key="case").value == table_key(3)
    assert list(table(again)["Variant A"]) == ["torch eager"] * 6


def test_a_label_that_changes_is_sent_to_the_browser(bench: Bench) -> None:
    # A browser stores the label of a chosen case, so a verdict in it would stay that of the cold times.
    bench.history.add(samples.run(id="cold", shares=runs.VARIANTS))
    test = opened(a="cold", b="cold", variant_a="torch_eager", variant_b="triton_persistent")
    case = test.selectbox(key="case").value
    test.segmented_control(key="l2").set_value("warm").run()
    box = test.selectbox(key="case")
    assert box.value == case
    assert box.proto.set_value
    assert "not comparable: neither A nor B has a warm time" in box.proto.raw_value
    test.run()
    assert not test.selectbox(key="case").proto.set_value, "once is enough"


def table_key(number: int) -> str:
    return [r.case.key for r in runs.before().results if r.variant == "torch_eager"][number]


def test_two_variants_of_one_run(bench: Bench) -> None:
    test = opened(a="h200-softmax", b="h200-softmax")
    assert "A and B are the same run. Choose a different variant for each side" in words(test)
    test.selectbox(key="variant_b").set_value("triton_persistent").run()
    assert "A and B are the same run" in words(test)
    test.selectbox(key="variant_a").set_value("torch_eager").run()
    sizes = len(bench.load("h200-softmax").plan.problems)
    assert tiles(test)["▲ Faster"] == f"{sizes} of {sizes} faster"
    assert "measured in the same rounds" in words(test)
    test.button(key="swap").click().run()
    assert tiles(test)["▼ Slower"] == f"{sizes} of {sizes} slower"
    assert (param(test, "variant_a"), param(test, "variant_b")) == ("triton_persistent", "torch_eager")


def test_nothing_chosen_says_what_to_do_and_one_button_does_it(bench: Bench) -> None:
    test = opened()
    assert "Choose two runs above" in words(test)
    assert not test.metric
    test.button(key="example").click().run()
    assert len(table(test)) == len(bench.load("h200-softmax").plan.problems)
    assert param(test, "variant_b") == "triton_persistent"


def test_the_newest_two_of_one_op_are_one_click_away(both: Bench) -> None:
    test = opened()
    test.button(key="newest_two").click().run()
    assert (param(test, "a"), param(test, "b")) == ("before", "after")
    assert len(table(test)) == 18


def test_a_run_alone_is_compared_with_the_one_before_it_unless_somebody_empties_the_box(both: Bench) -> None:
    test = opened(b="after")
    assert param(test, "a") == "before"
    test.selectbox(key="a").set_value(None).run()
    assert param(test, "a") is None
    test.run()
    assert param(test, "a") is None
    assert "Choose two runs above" in words(test)


def test_runs_that_the_address_lists_as_that_of_roofline_does_are_compared(both: Bench) -> None:
    test = opened(runs="before,after")
    assert (param(test, "a"), param(test, "b"), param(test, "runs")) == ("before", "after", None)
    assert tiles(test)["▼ Slower"] == "6 of 12 slower"
    assert param(opened(runs="after"), "a") == "before", "one run is B; A is the one before it"
    assert "two runs: the first two of the 3 in the address are shown" in words(opened(runs="before,after,before"))
    assert "runs was left out: a and b name the two runs" in words(opened(a="after", b="before", runs="before,after"))


def test_an_unknown_run_is_named(both: Bench) -> None:
    both.history.delete("before")
    test = opened(a="before", b="never")
    assert "No run **before, never** on this server" in words(test)
    assert "Choose two runs above" in words(test)


def test_values_that_nothing_has_are_named(both: Bench) -> None:
    said = words(opened(a="before", b="after", variant_a="torch_eagr", l2="hot"))
    assert "variant_a 'torch_eagr' is not among" in said
    assert "l2 'hot' is not among cold, warm" in said


def test_runs_without_a_common_case_say_so(both: Bench) -> None:
    said = words(opened(a="before", b="h200-add"))
    assert "A and B have no case in common: the ops differ (rmsnorm in A, add in B)." in said


def test_other_sizes_are_offered_on_bench_and_as_a_command(bench: Bench) -> None:
    """A is the run of another machine at sizes that B lacks: its sizes are measured here with the variants of B."""
    shares = {"torch_eager": 0.6, "torch_compile": 0.9}
    for name, n in (("small", 128), ("large", 256)):
        bench.history.add(samples.run(id=name, sizes=[{"m": 64, "n": n}], shares=shares))
    test = opened(a="small", b="large")
    said = words(test)
    assert "the sizes differ (A: n = 128; B: n = 256)." in said
    assert "Measure the 1 size of A with" in said
    link = next(e for e in test.get("page_link") if "these sizes" in e.proto.label)
    assert "m=64&n=128" in link.proto.query_string
    assert "--size m=64 --size n=128" in test.code[0].value
    assert _charts_of_both(test) == {"Draw both runs on the roofline": "runs=small%2Clarge"}, (
        "a size each is no chart by size"
    )
    for name, m in (("few", 64), ("many", 128)):
        bench.history.add(samples.run(id=name, sizes=[{"m": m, "n": n} for n in (256, 512)], shares=shares))
    assert _charts_of_both(opened(a="few", b="many")) == {
        "Draw both runs by size": "run=few&with=many",
        "Draw both runs on the roofline": "runs=few%2Cmany",
    }


def _charts_of_both(test: AppTest) -> dict[str, str]:
    return {e.proto.label: e.proto.query_string for e in test.get("page_link") if "both runs" in e.proto.label}


def test_what_broke_is_told_first(bench: Bench) -> None:
    bench.history.add(runs.before())
    bench.history.add(runs.after({"triton_persistent": 1.02}, wrong="triton_persistent"))
    test = opened(a="before", b="after")
    assert "**1 case had a correct time in A but not in B**: triton persistent" in words(test)
    assert table(test)["Verdict"][0] == "✕ not comparable"
    assert pd.isna(table(test)["Time B / time A"][0])
    test.selectbox(key="case").set_value(runs.before().results[-1].case.key).run()
    assert "no correct cold time" in words(test)


def test_many_cases_show_the_worst_and_all_on_request(bench: Bench) -> None:
    run = bench.load("h200-add")
    bench.history.add(msgspec.structs.replace(run, id="other", created_at="2026-11-23T11:00:00+00:00"))
    test = opened(a="h200-add", b="other")
    assert test.segmented_control(key="rows").options == ["the worst 24", f"all {len(run.results)}"]
    test.segmented_control(key="rows").set_value(f"all {len(run.results)}").run()
    assert param(test, "rows") == f"all {len(run.results)}"
    assert "A and B are the same measurement" in words(test)


def test_a_file_is_kept_and_compared(bench: Bench) -> None:
    bench.history.add(runs.before())
    test = opened(a="before")
    test.file_uploader[0].upload("new.json", encode(runs.after({"triton_persistent": 1.05})), "application/json").run()
    assert param(test, "b") == "after"
    assert tiles(test)["▼ Slower"] == "6 of 6 slower"
    test.file_uploader[0].upload("bad.json", b"{}", "application/json").run()
    assert "bad.json could not be imported" in words(test)


def test_a_redraw_of_a_hundred_cases_is_quick(bench: Bench) -> None:
    run = bench.load("h200-add")
    results = tuple(msgspec.structs.replace(r, source_digest="changed") for r in run.results)
    bench.history.add(msgspec.structs.replace(run, id="other", results=results))
    test = opened(a="h200-add", b="other")
    began_s = time.process_time()
    test.segmented_control(key="l2").set_value("cold").run()
    assert time.process_time() - began_s < 0.6  # 0.04 s alone; AppTest's own part is in it


def test_two_runs_of_the_same_minute_and_name_stay_apart(bench: Bench) -> None:
    """Streamlit finds an option by its label, so each label has to be of one run."""
    before = runs.before()
    bench.history.add(before)
    after = runs.after({"triton_persistent": 1.05, "triton_block_per_row": 0.9})
    bench.history.add(msgspec.structs.replace(after, title=before.title, created_at=before.created_at))
    test = opened(a="before", b="after")
    boxes = [test.selectbox(key=side) for side in ("a", "b")]
    labels = boxes[0].options
    assert len(set(labels)) == len(labels)
    assert tiles(test)["▼ Slower"] == "6 of 12 slower"
    test.run()  # the boxes send their labels
    assert (boxes[0].value, boxes[1].value) == ("before", "after")
    assert tiles(test)["▼ Slower"] == "6 of 12 slower"
    test.toggle(key="machine_code").set_value(True).run()
    assert "A is a library: no machine code; B is a library: no machine code." in words(test)


def test_the_machine_code_of_two_variants_names_the_likeliest_cause_first(bench: Bench) -> None:
    pytest.importorskip("triton")  # its wheel has nvdisasm
    run = code.run_with_cubins()

    def longer(result: Result) -> Result:
        """Twice the time, in the same rounds."""
        assert result.timing is not None
        assert result.timing.device_cold_s is not None
        cold = samples.figure(2 * result.timing.device_cold_s.estimate, seed=7)
        outcome = msgspec.structs.replace(result.timing, device_cold_s=cold)
        return msgspec.structs.replace(result, outcome=outcome)

    results = tuple(longer(r) if r.variant == "cuda_scalar" else r for r in run.results)
    bench.history.take_in(encode(msgspec.structs.replace(run, results=results)))
    assert bench.history.code_facts.reading(bench.load(run.id)).wait(30)
    test = opened(a=run.id, b=run.id, variant_a="cuda_vec16", variant_b="cuda_scalar")
    assert "The likeliest reasons: grid and fast paths (2)." in words(test)
    test.toggle(key="machine_code").set_value(True).run()
    said = words(test)
    told = "from A to B, 4-byte loads and stores replaced 16-byte ones."
    assert f"**The likeliest reason why A is faster: {told}** In favour of A: Wider accesses" in said
    assert "Wider accesses keep more bytes in flight" in said
    changes = next(d.value for d in test.table if "How it can help" in d.value)
    assert changes["Change from A to B"][0] == "▸ 4-byte loads and stores replaced 16-byte ones"
    assert changes["Role"][0] == "can be the reason"
    # Both kernels are in one cubin, and yet they are not the same code.
    compared = compare_stored(bench, run.id, run.id, variant_a="cuda_vec16", variant_b="cuda_scalar")
    (kernel,) = code_difference(bench.history.code_facts, compared, compared.pairs[0]).kernels
    assert kernel.differences
    assert not kernel.same_file
