"""The Roofline page, run by AppTest from the real entry script over a real store and the shipped runs."""

from __future__ import annotations

import re
import time

import earlier_runs
import msgspec
import pandas as pd
import planted_limits as plant
import sample_runs as samples
from open_page import charts, open_page
from streamlit.testing.v1 import AppTest

from kernelviz.bench import Bench
from kernelviz.core import units
from kernelviz.formats import shipped_runs
from kernelviz.text.limiter import MEANINGS


def opened(**params: str) -> AppTest:
    return open_page(params, "roofline")


def words(test: AppTest) -> str:
    said = (str(e.value) for kind in ("markdown", "caption", "warning", "error", "info") for e in getattr(test, kind))
    return "\n".join(said).replace("\\", "")


def table(test: AppTest) -> pd.DataFrame:
    return test.dataframe[0].value


def param(test: AppTest, name: str) -> str | None:
    found = test.query_params.get(name)
    return found[0] if isinstance(found, list) else found


def test_the_first_visit_shows_shipped_runs_and_says_what_limits_them(bench: Bench) -> None:
    test = opened()
    assert test.multiselect(key="chosen_runs").value == ["h200-add", "h200-matmul", "h200-rmsnorm"]
    assert len(charts(test)) == 1
    first = (shipped_runs.load(name) for name in (plant.ADD, plant.MATMUL, plant.RMSNORM))
    assert len(table(test)) == sum(r.timing is not None for run in first for r in run.results)
    said = words(test)
    for word in ("bandwidth", "launch", "latency", "unclear", "compute"):
        assert re.search(rf"\*\*{word}\*\* \(\d+ cases?\): {re.escape(MEANINGS[word])}", said)  # type: ignore[index]
    assert f"s): {MEANINGS['compute']} :gray[(torch eager, " in said, "which variants have that limiter"
    assert "times, launch facts and, for cases that have them, hardware counters" in said


def test_an_address_with_one_run_draws_that_run(bench: Bench) -> None:
    test = opened(run=plant.MATMUL)
    assert test.multiselect(key="chosen_runs").value == [plant.MATMUL]
    assert (param(test, "runs"), param(test, "run")) == (plant.MATMUL, None)
    columns = list(table(test).columns)
    assert columns.index("Limiter") < columns.index("Share of roof, %"), "what the table is about is not cut off"


def test_an_op_of_one_size_beside_one_of_several_states_all_of_its_sizes(bench: Bench) -> None:
    sizes = table(opened(runs="h200-linear_cross_entropy-chosen-sizes,h200-attention_decode-chosen-sizes")).set_index(
        "Op"
    )["Sizes"]
    assert set(sizes["linear_cross_entropy"]) == {"m = 8,192, h = 4,096, v = 128,256"}
    assert {"b = 1, l = 8,192", "b = 64, l = 65,536"} <= set(sizes["attention_decode"])


def test_own_runs_come_first_and_the_address_names_what_is_shown(bench: Bench) -> None:
    bench.history.add(samples.run(id="own", title="mine"))
    test = opened()
    assert param(test, "runs") == "own"
    test.multiselect(key="chosen_runs").set_value(["own", plant.MATMUL]).run()
    assert param(test, "runs") == f"own,{plant.MATMUL}"
    assert len(table(test)) == 30 + len(shipped_runs.load(plant.MATMUL).results)


def test_a_memory_roof_above_the_data_sheet_is_explained(bench: Bench) -> None:
    said = words(opened(runs="h100-80gb-hbm3-matmul"))
    assert re.search(
        r"H100 80GB HBM3: read:write 2:1 at 105 MB is 10\d\.\d % of the data sheet: up to 33 % of its", said
    )
    assert "of the data sheet: up to" not in words(opened(runs="h100-80gb-hbm3-matmul", roofs="datasheet"))
    assert "of the data sheet: up to" not in words(opened(runs=plant.MATMUL))


def test_the_address_reopens_the_page_as_it_was(bench: Bench) -> None:
    case = "h200-matmul | matmul bf16 m=4096 n=4096 k=4096 | cuda_naive"
    asked = {"runs": f"{plant.MATMUL},{plant.ADD}", "level": "l2", "roofs": "datasheet", "precision": "bf16",
             "variant": "matmul/cuda_naive", "case": case}  # fmt: skip
    test = opened(**asked)
    assert {name: param(test, name) for name in asked} == asked
    assert set(table(test)["Variant"]) == {"cuda naive"}
    said = words(test)
    assert "matmul: cuda naive · m = n = k = 4,096 · bf16 · NVIDIA H200" in said
    (timed,) = (r for r in shipped_runs.load(plant.MATMUL).results if f"{plant.MATMUL} | {r.case.key}" == case)
    assert timed.timing is not None
    assert f"{units.seconds(timed.timing.device_warm_s.estimate)} ±" in said
    assert "data sheet" in said
    again = opened(**{name: param(test, name) or "" for name in asked})
    assert again.dataframe[0].value.equals(table(test))
    # Another address in the open page, as of the browser's Back button.
    again.query_params.clear()
    again.query_params.update({"runs": plant.ADD, "level": "dram", "variant": "add/cuda_scalar"})
    assert not again.run().exception
    shown = {name: param(again, name) for name in asked}
    assert shown == dict.fromkeys(asked) | {"runs": plant.ADD, "variant": "add/cuda_scalar"}
    assert again.segmented_control(key="level").value == "dram"
    assert set(table(again)["Variant"]) == {"cuda scalar"}


def test_precision_variant_and_level_choose(bench: Bench) -> None:
    add = "h100-80gb-hbm3-add"
    test = opened(runs=f"{plant.MATMUL},{add}")
    test.segmented_control(key="precision").set_value("fp32").run()
    assert set(table(test)["Variant"]) <= {v.replace("_", " ") for v in bench.load(add).plan.variants}
    cold = table(test)
    test.segmented_control(key="level").set_value("l2").run()
    warm = table(test)
    assert param(test, "level") == "l2"
    assert (warm["Time, µs"][:6] < cold["Time, µs"][:6]).all()
    assert "L2-limited" in set(warm["Limiter"])
    test.selectbox(key="variant").set_value("add/cuda_scalar").run()
    assert len(table(test)) == 17
    assert param(test, "variant") == "add/cuda_scalar"


def test_a_case_is_told_with_its_evidence_and_let_go(bench: Bench) -> None:
    test = opened(runs=plant.ADD)
    key = "h200-add | add fp32 n=4096 | torch_eager"
    test.selectbox(key="case").set_value(key).run()
    assert param(test, "case") == key
    (empty_s,) = (roof.time_s for roof in bench.load(plant.ADD).environment.roofs if roof.what == "empty_kernel")
    assert empty_s is not None
    launch = f"an empty kernel's {empty_s * 1e9:.0f} ns"
    assert re.search(rf"1\.\d\d µs is [12]\.\d × {launch}", words(test)), "the roof of the same run"
    test.button(key="show_all").click().run()
    assert param(test, "case") is None
    assert launch not in words(test)


def test_no_run_chosen_says_what_to_do_and_one_button_does_it(bench: Bench) -> None:
    test = opened(runs="")
    assert "No run is chosen" in words(test)
    assert not charts(test)
    test.button(key="example").click().run()
    assert len(charts(test)) == 1


def test_an_unknown_run_is_named_and_the_others_are_shown(bench: Bench) -> None:
    bench.history.add(samples.run(id="gone"))
    bench.history.delete("gone")
    test = opened(runs=f"never,gone,{plant.ADD}")
    assert "No run **never, gone** on this server" in words(test)
    assert test.multiselect(key="chosen_runs").value == [plant.ADD]
    assert len(table(test)) == len(shipped_runs.load(plant.ADD).results)


def test_values_that_nothing_has_are_named(bench: Bench) -> None:
    test = opened(runs=plant.ADD, level="l3", variant="add/torch_eagr")
    said = words(test)
    assert "level 'l3' is not among dram, l2" in said
    assert "variant 'add/torch_eagr' is not among" in said
    assert test.selectbox(key="variant").value == "add/torch_eager"


def test_what_has_no_place_is_counted(bench: Bench) -> None:
    bench.history.add(samples.mixed())
    test = opened(runs="mixed,h200-copy")
    said = words(test)
    copied = len(shipped_runs.load("h200-copy").results)
    assert f"{copied} of {copied + 18} cases do no arithmetic" in said
    assert "12 cases have no correct cold time" in said
    only_failed = samples.run(
        [samples.failed(samples.problems("add", [{"n": 8}])[0], "torch_eager", "crash")], id="failed"
    )
    bench.history.add(only_failed)
    assert "None of the chosen runs has a correct time at this memory level" in words(opened(runs="failed"))


def test_missing_roofs_are_said(bench: Bench) -> None:
    bench.history.add(plant.moved_to(samples.run(id="strange"), samples.CPU, ()))
    assert "The roofs of AMD EPYC 9654 are not measured: press Calibrate on the page Device of that machine." in words(
        opened(runs="strange")
    )
    assert "kernelviz has no data sheet of AMD EPYC 9654" in words(opened(runs="strange", roofs="datasheet"))


def test_a_matrix_product_without_measured_roofs_is_drawn_and_says_what_it_lacks(bench: Bench) -> None:
    run = msgspec.structs.replace(earlier_runs.load(plant.MATMUL), id="no-roofs")
    bench.history.add(plant.moved_to(run, run.environment.device, ()))
    test = opened(runs="no-roofs")
    assert not test.exception
    said = words(test)
    assert "press Calibrate on the page Device of that machine, or choose data-sheet roofs." in said
    assert "s): roofs that the answer needs are not measured on the device." in said


def test_a_redraw_of_every_shipped_run_is_quick(bench: Bench) -> None:
    """0.02 s here; a tenth of a second is what a knob may take, and AppTest's own part grows with the table."""
    test = opened(runs="h200-add,h200-copy,h200-matmul,h200-rmsnorm,h200-scale,h200-softmax")
    began_s = time.process_time()
    test.run()
    assert time.process_time() - began_s < 1.0


def test_the_caches_of_a_cpu_are_not_called_l2(bench: Bench) -> None:
    bench.history.add(samples.run(id="on-cpu", device=samples.CPU, roofs=()))
    bench.history.add(samples.run(id="on-gpu"))
    assert [d.kind for d in bench.history.devices(["on-cpu", plant.ADD])] == ["cpu", "cuda"]
    names = []
    for device in ("cpu", "gpu"):
        run = f"on-{device}"
        compared = {"a": run, "b": run, "variant_a": "torch_eager", "variant_b": "torch_compile"}
        names += [opened(runs=run).button_group(key="level").options[1]]
        names += open_page(compared, "compare").button_group(key="l2").options
    assert names == ["caches · warm times", "cold caches", "warm caches", "L2 · warm times", "cold L2", "warm L2"]
