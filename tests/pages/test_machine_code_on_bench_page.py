"""The Bench page's tab Machine code: techniques, resources and occupancy of each case, and why some have none."""

from __future__ import annotations

import sample_code as code
from msgspec.structs import replace
from open_page import open_page
from streamlit.testing.v1 import AppTest

from kernelviz.bench import Bench
from kernelviz.formats import document

OPEN = {"tables": "Machine code"}


def texts(test: AppTest) -> str:
    return "\n".join(str(e.value) for kind in ("markdown", "caption") for e in getattr(test, kind)).replace("\\", "")


def opened(bench: Bench, run_id: str, **params: str) -> AppTest:
    reading = bench.history.code_facts.reading(bench.load(run_id))
    assert reading.wait(60)
    return open_page({"run": run_id, **params}, state=OPEN)


def test_the_table_and_the_badges_of_a_case(bench: Bench) -> None:
    run_id = bench.history.take_in(document.encode(code.run_with_cubins()))
    test = opened(bench, run_id, code_of="cuda_vec16")
    (table,) = (d.value for d in test.dataframe if "Techniques" in d.value.columns)
    assert len(table) == 6
    row = table[(table["Variant"] == "cuda vec16") & (table["n"] == 2**24)].iloc[0]
    assert (row["Techniques"], row["Registers"], row["Spills"], row["Limited by"]) == (
        "✓ 16-byte accesses",
        22,
        0,
        "threads",
    )
    assert row["Main loop"] == 58
    said = texts(test)
    assert ":green-badge[✓ 16-byte accesses]" in said
    assert "15 full waves of 1056 blocks" in said
    assert "torch compile: no code was captured when this was measured" in said
    assert f"kernelviz code {run_id} --facts" in said


def test_the_run_that_came_with_its_code(bench: Bench) -> None:
    test = opened(bench, "h200-linear_gelu-code", code_of="cuda_wgmma_fused")
    (table,) = (d.value for d in test.dataframe if "Techniques" in d.value.columns)
    # Without torch_eager, whose kernels come compiled; torch_compile has one of its own beside cuBLAS's.
    assert set(table["Variant"]) == {"torch compile", "triton fused", "cuda wgmma fused", "cutlass fused"}
    row = table[(table["Variant"] == "cuda wgmma fused") & (table["m = n = k"] == 4096)].iloc[0]
    assert (row["Registers"], row["Spills"]) == (168, 0)
    # Green as long as the variant, whose source may have changed since, still declares it.
    assert ":green-badge[✓ TMA]" in texts(test) or ":gray-badge[· TMA]" in texts(test)


def test_a_recorded_run_without_code_says_how_to_get_it(bench: Bench) -> None:
    run = code.run_with_cubins()
    bare = replace(run, id="bare", code=(), results=tuple(replace(r, code=()) for r in run.results))
    test = opened(bench, bench.history.take_in(document.encode(bare)))
    assert "no code was captured when this was measured (earlier versions captured none); to get it, measure" in texts(
        test
    )
    assert not any("Techniques" in d.value.columns for d in test.dataframe)


def test_nothing_is_read_while_the_tab_is_closed_or_the_run_goes_on(bench: Bench) -> None:
    run_id = bench.history.take_in(document.encode(code.run_with_cubins()))
    open_page({"run": run_id})
    assert not bench.history.code_facts._known
