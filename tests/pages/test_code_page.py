"""The page Code, run by AppTest from the real entry script: one case, two cases, and each state without code."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterator
from typing import Any

import pytest
import sample_code as code
import sample_runs as samples
from msgspec.structs import replace
from open_page import open_page
from streamlit.testing.v1 import AppTest

import kernelviz.bench
from kernelviz.bench import Bench
from kernelviz.bench.comparison import compare
from kernelviz.core import Run
from kernelviz.core.code import digest_of, packed
from kernelviz.formats import document, shipped_runs
from kernelviz.metrics.figures import figure_of
from kernelviz.store import Store
from kernelviz.text import describe_pair, format_time

RUN, PROBLEM = "h200-linear_gelu-code", "linear_gelu bf16 m=4096 n=4096 k=4096"
CASE = {"run": RUN, "variant": "triton_fused", "problem": PROBLEM}
PAIR = {**CASE, "variant_b": "cuda_wgmma_fused"}


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """One for all tests of this file, because each cubin takes seconds to read the first time."""
    made = Bench(Store.open(tmp_path_factory.mktemp("code")), (samples.CPU,))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernelviz.bench, "current", lambda: made)
        yield made
    made.close()


def opened(**params: str) -> AppTest:
    return open_page(params, "code")


def said(test: AppTest) -> str:
    kinds = ("markdown", "caption", "warning", "error", "info")
    return "\n".join(str(e.value) for kind in kinds for e in getattr(test, kind)).replace("\\", "")


def shown(test: AppTest) -> dict[str, Any] | None:
    """The content that the browser gets."""
    for element in test.get("bidi_component"):
        if element.proto.component_name == "kernelviz_code":
            content: dict[str, Any] = json.loads(
                gzip.decompress(base64.b64decode(json.loads(element.proto.json)["packed"]))
            )
            return content
    return None


def texts(test: AppTest) -> list[str]:
    content = shown(test)
    return [] if content is None else [pane["key"] for pane in content["panes"]]


def param(test: AppTest, name: str) -> str | None:
    found = test.query_params.get(name)
    return found[0] if isinstance(found, list) else found


def stored(bench: Bench, run: Run) -> str:
    return bench.history.take_in(document.encode(run))


def test_the_first_visit_shows_real_code_beside_its_source_and_the_address_names_it(bench: Bench) -> None:
    test = opened()
    assert texts(test) == ["source", "sass"]
    assert [param(test, name) for name in ("run", "variant", "kind")] == [RUN, "triton_fused", "sass"]
    words = said(test)
    assert "registers per thread" in words
    assert "main loop 0x" in words
    # Its time with interval and method, as the comparison has it, and what it was compiled with.
    case = (param(test, "variant"), param(test, "problem"))
    result = next(r for r in shipped_runs.load(RUN).results if (r.variant, r.problem.key) == case)
    assert f"**{format_time(figure_of(result.timing, 'cold'))} (device time, cold caches)**" in words
    assert "Compiled with warps=8." in words
    macros = said(opened(**{**CASE, "variant": "cuda_wgmma_fused"}))
    assert "COLUMNS=256, CONSUMERS=2" in macros
    assert "-badge[" in words
    table = next(d.value for d in test.table if "Fact" in d.value.columns)
    assert {"Registers", "Occupancy", "Main loop"} <= set(table["Fact"])
    # The address opens exactly this again, also with another text.
    again = opened(**{name: str(param(test, name)) for name in ("run", "variant", "problem", "kernel", "kind")})
    assert shown(again) == shown(test)
    every = opened(**CASE, kind="all", control="shown")
    assert texts(every) == ["source", "ptx", "sass"]
    content = shown(every)
    assert content is not None
    assert content["panes"][2]["control"]
    assert texts(opened(**CASE, kind="ttgir")) == ["source", "ttgir"]


def test_two_variants_have_the_numbers_of_compare_and_their_facts_side_by_side(bench: Bench) -> None:
    test = opened(**PAIR, kind="main-loop")
    words = said(test)
    run = shipped_runs.load(RUN)
    pair = next(
        p
        for p in compare(run, run, variant_a="triton_fused", variant_b="cuda_wgmma_fused").pairs
        if p.problem.key == PROBLEM
    )
    assert str(describe_pair(pair)) in words
    assert "The likeliest reason why B is faster" in words
    assert "Normalised" in words
    assert [param(test, name) for name in ("run_b", "variant_b", "problem_b")] == [RUN, "cuda_wgmma_fused", PROBLEM]
    content = shown(test)
    assert content is not None
    assert content["mode"] == "diff"
    assert not any("/*" in line for line in content["a"]["text"].split("\n"))
    table = next(d.value for d in test.table if "Differs" in d.value.columns)
    registers = table[table["Fact"] == "Registers"].iloc[0]
    assert (registers["Differs"], registers["A"] != registers["B"]) == ("≠ differs", True)
    assert "\\= same" in set(table["Differs"])
    assert "--diff cuda_wgmma_fused --kind main-loop" in words
    raw = shown(opened(**PAIR, kind="main-loop", compared="as compiled"))
    assert raw is not None
    assert "/*" in raw["a"]["text"]
    # Other sizes have no ratio, and say so.
    sizes = opened(**{**CASE, "variant_b": "triton_fused", "problem_b": "linear_gelu bf16 m=512 n=512 k=512"})
    assert "The sizes differ, so the times are not compared." in said(sizes)
    test.toggle(key="code_compare").set_value(False).run()
    assert not test.exception
    assert param(test, "variant_b") is None
    assert texts(test) == ["source", "main-loop"]


def test_an_unknown_run_is_named_beside_the_runs_that_have_code(bench: Bench) -> None:
    test = opened(run="no-such-run", variant="no_variant", kind="sas")
    words = said(test)
    assert "No run **no-such-run** on this server" in words
    assert "kernelviz export RUN -o FILE --with-code" in words
    assert "Runs with code" in words
    assert "variant 'no_variant' is not there" in words
    assert texts(test) == ["source", "sass"]


@pytest.mark.parametrize(
    ("variant", "reason"),
    [
        ("torch_eager", "The kernels come compiled with the library"),
        ("torch_compile", "no code was captured when this was measured"),
    ],
)
def test_a_case_without_code_says_why(bench: Bench, variant: str, reason: str) -> None:
    run_id = stored(bench, code.run_with_cubins())
    test = opened(run=run_id, variant=variant)
    assert "has no code" in said(test)
    assert reason.lower() in said(test).lower()
    assert shown(test) is None


def test_code_that_is_elsewhere_damaged_or_without_a_tool_says_what_to_do(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = opened(run="h100-80gb-hbm3-matmul", variant="triton_grouped")
    assert "kernelviz comes with the code of some recorded cases only" in said(elsewhere)
    assert "--with-code" not in said(elsewhere)
    assert shown(elsewhere) is None
    held = {"source": code.SOURCE.encode(), "ptx": code.PTX.encode(), "cubin": b"\x7fELF not a real one"}
    run = samples.run(op="add", sizes=[{"n": 1024}], dtype="fp32", id="damaged")
    described = (code.code_of("add_kernel", held),)
    results = tuple(replace(r, code=described) if r.variant == code.VARIANT else r for r in run.results)
    run_id = stored(bench, replace(run, results=results, code=tuple(map(packed, held.values()))))
    damaged = opened(run=run_id, variant=code.VARIANT, kind="sass")
    assert "No SASS: the cubin cannot be read" in said(damaged)
    assert texts(damaged) == ["source"]
    content = shown(opened(run=run_id, variant=code.VARIANT, kind="ptx"))
    assert content is not None
    assert "wrote no line numbers" in content["panes"][1]["note"]
    monkeypatch.setattr("kernelviz.bench.code_listings.tool_paths", lambda tool: ())
    monkeypatch.setattr("kernelviz.bench.code_facts.tool_paths", lambda tool: ())
    without = opened(
        run=stored(bench, replace(code.run_with_cubins(), id="no-tool")), variant="cuda_vec16", kind="sass"
    )
    assert "pip install nvidia-cuda-nvdisasm" in said(without)


def test_a_run_that_goes_on_is_not_disturbed(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    run_id = stored(bench, code.run("going-on"))
    going = replace(bench.load(run_id), status="running")
    monkeypatch.setattr(bench, "load", lambda wanted: going)
    test = opened(run=run_id, variant=code.VARIANT)
    assert "SASS and facts are read when it has ended" in said(test)
    assert texts(test) == ["source", "ptx"]
    assert digest_of(code.CUBIN) not in bench.history.code_facts._known


def test_the_code_of_a_plugin_says_that_it_is_not_exported(bench: Bench) -> None:
    test = opened(run=stored(bench, code.run()), variant=code.MINE, kind="source")
    assert "the code of a user's own file" in said(test)
    assert texts(test) == ["source"]


def test_bench_and_compare_link_to_the_page(bench: Bench) -> None:
    reading = bench.history.code_facts.reading(bench.load(RUN))
    assert reading.wait(60)
    tab = open_page({"run": RUN, "code_of": "cuda_wgmma_fused"}, state={"tables": "Machine code"})
    links = [link.proto.query_string for link in tab.get("page_link")]
    assert any(f"run={RUN}" in link and "variant=cuda_wgmma_fused" in link and "problem=" in link for link in links)
    sides = {"a": RUN, "b": RUN, "variant_a": "triton_fused", "variant_b": "cuda_wgmma_fused"}
    panel = open_page(sides, "compare", state={"machine_code": True})
    links = [link.proto.query_string for link in panel.get("page_link")]
    assert any("variant=triton_fused" in link and "variant_b=cuda_wgmma_fused" in link for link in links)
