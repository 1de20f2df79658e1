"""The code of kernels line by line, and two of them compared: the same numbers as the comparison of runs, and each reason why a
text is not there."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
import sample_code as code
import sample_runs as samples
from msgspec.structs import replace

import kernelviz as kv
import kernelviz.bench as use_cases
from kernelviz.bench import Bench
from kernelviz.bench.comparison import compare
from kernelviz.cli import main
from kernelviz.core import Run
from kernelviz.core.code import packed
from kernelviz.core.code_listing import ListingKind, MissingReason
from kernelviz.core.errors import BadField, UnknownName
from kernelviz.formats import code_file, document, recordings_file
from kernelviz.store import Store
from kernelviz.text import describe_pair
from kernelviz.text.code_listings import KIND_NAMES, describe_missing_listing

RUN, A, B = "h200-linear_gelu-code", "triton_fused", "cuda_wgmma_fused"
PROBLEM = "linear_gelu bf16 m=512 n=512 k=512"
LARGE = "add fp32 n=16777216"


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    made = Bench(Store.open(tmp_path / "store"), (samples.CPU,))
    monkeypatch.setattr(use_cases, "current", lambda: made)
    yield made
    made.close()


def with_cubin(content: bytes, *, here: bool = True) -> Run:
    """A run in which `cuda_vec16` has this cubin, a source and PTX."""
    run = code.run_with_cubins()
    held = {"source": b"int a;\n", "ptx": code.PTX.encode(), "cubin": content}
    described = (replace(code.code_of("arithmetic_vec16", held), compiler="nvrtc"),)
    results = tuple(replace(r, code=described) if r.variant == "cuda_vec16" else r for r in run.results)
    return replace(run, results=results, code=tuple(map(packed, held.values())) if here else ())


def test_two_variants_are_compared_with_the_numbers_of_the_comparison_of_runs(bench: Bench) -> None:
    compared = kv.code_diff(RUN, A, B, problem=PROBLEM, kind="main-loop")
    run = bench.load(RUN)
    pairs = compare(run, run, variant_a=A, variant_b=B).pairs
    assert compared.measured is not None
    assert compared.measured.pair == next(pair for pair in pairs if pair.problem.key == PROBLEM)
    assert compared.changes.faster == {"faster": "b", "slower": "a"}.get(compared.measured.pair.kind)
    assert compared.diff.normalised
    loop = compared.a.listings["main-loop"]
    assert (
        len(compared.diff.diff.a) == len(compared.diff.lines_a) == sum(line.address is not None for line in loop.lines)
    )
    assert all(loop.lines[number].address is not None for number in compared.diff.lines_a)
    # As they were compiled, no instruction is equal, because addresses differ.
    raw = kv.code_diff(RUN, A, B, problem=PROBLEM, kind="main-loop", normalise=False)
    assert raw.diff.diff.equal < compared.diff.diff.equal
    # Sizes that differ have no ratio; a case with itself has none either.
    other = kv.code_diff(RUN, A, problem=PROBLEM, problem_b="linear_gelu bf16 m=4096 n=4096 k=4096", kind="sass")
    assert other.measured is None
    assert other.changes.faster is None
    same = kv.code_diff(RUN, A, problem=PROBLEM, kind="ptx")
    assert same.measured is None
    assert not same.diff.diff.changes


def test_the_command_prints_the_same_difference(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["code", RUN, A, "--problem", PROBLEM, "--diff", B, "--kind", "main-loop"]
    assert main(command) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith(f"--- {RUN} {A} {PROBLEM} linear_kernel\n+++ {RUN} {B} {PROBLEM} matmul_wgmma\n@@ ")
    assert "B against A: ▼ " in printed.err
    assert "Normalised:" in printed.err
    assert main([*command, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    removed = sum(line.startswith("-") for line in printed.out.splitlines()[2:])
    added = sum(line.startswith("+") for line in printed.out.splitlines()[2:])
    assert (told["lines_only_in_a"], told["lines_only_in_b"]) == (removed, added)
    assert told["verdict"] == "slower"
    assert main(["code", RUN, A, "--problem", PROBLEM, "--kind", "main-loop"]) == 0
    loop = capsys.readouterr().out
    assert "HGMMA" in loop
    assert len(loop.splitlines()) == len(kv.code_listing(RUN, A, problem=PROBLEM).listings["main-loop"].lines)
    for wrong, told in (
        (["--diff-problem", PROBLEM], "add --diff VARIANT"),
        (["--diff", B, "--kind", "ttir"], "no compiler made it"),
        (["--diff", B, "--kind", "source", "--output", "x"], "leave out --output"),
        (["--diff", "no_variant"], "no_variant"),
    ):
        assert main(["code", RUN, A, "--problem", PROBLEM, *wrong]) == 2, wrong
        assert told in capsys.readouterr().err
    assert main(["code", RUN, A, "--diff", B]) == 2
    assert "name one: " in capsys.readouterr().err


def test_the_page_that_opens_offline_has_what_the_command_says(bench: Bench, tmp_path: Path) -> None:
    file = tmp_path / "code.html"
    assert main(["code", RUN, A, "--problem", PROBLEM, "--diff", B, "--html", str(file)]) == 0
    html = file.read_bytes()
    assert html == kv.code_page(RUN, A, B, problem=PROBLEM)
    compared = kv.code_diff(RUN, A, B, problem=PROBLEM, kind="main-loop")
    assert compared.measured is not None
    assert str(describe_pair(compared.measured.pair)).encode() in html
    assert "≠ differs".encode() in html
    one = kv.code_page(RUN, A, problem=PROBLEM).decode()
    assert "Compiled with warps=" in one
    options = re.findall(r"<option value=\d+>([^<]*)", one)
    assert options == ["SASS", "Source", "TTIR", "TTGIR", "PTX", "Main loop", "Source, PTX, SASS"]
    for wrong in (["--kind", "ptx"], ["--json"], ["--facts"], ["--output", "x"]):
        assert main(["code", RUN, A, "--problem", PROBLEM, "--html", str(file), *wrong]) == 2, wrong
    assert main(["code", RUN, "torch_eager", "--problem", PROBLEM, "--html", str(file)]) == 2


def test_every_reason_without_a_text_is_told(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def reasons(run: Run, variant: str = "cuda_vec16") -> dict[ListingKind, MissingReason]:
        found = bench.history.code_listings.of_kernel(run, variant, LARGE)
        assert set(found.listings) | set(found.missing) == set(get_args(ListingKind))
        for missing in found.missing.values():
            assert KIND_NAMES[missing.kind].lower() in str(describe_missing_listing(missing)).lower()
        return {kind: missing.reason for kind, missing in found.missing.items()}

    real = with_cubin(code.cubin("arithmetic-sm_90"))
    triton = {"ttir": "not_captured", "ttgir": "not_captured"}
    assert reasons(real) == {**triton, "main-loop": "no_main_loop"}
    damaged = with_cubin(b"\x7fELF\x02\x01 not a real one")
    assert reasons(damaged) == {**triton, "sass": "unreadable", "main-loop": "unreadable"}
    assert reasons(with_cubin(b"\0" * (2**21 + 1))) == {**triton, "sass": "too_large", "main-loop": "too_large"}
    gone = with_cubin(b"\x7fELF elsewhere", here=False)
    absent = dict.fromkeys(("source", "ptx", "sass", "main-loop"), "not_here")
    assert reasons(gone) == {**triton, **absent}
    monkeypatch.setattr("kernelviz.bench.code_listings.tool_paths", lambda tool: ())
    monkeypatch.setattr("kernelviz.bench.code_facts.tool_paths", lambda tool: ())
    other = with_cubin(code.cubin("softmax_three_pass-sm_90"))
    assert reasons(other) == {**triton, "sass": "no_tool", "main-loop": "no_tool"}
    assert reasons(real)["main-loop"] == "no_main_loop", "what was read once needs no tool"


def test_what_does_not_exist_is_named(bench: Bench) -> None:
    with pytest.raises(UnknownName):
        kv.code_listing(RUN, "no_variant", problem=PROBLEM)
    with pytest.raises(UnknownName):
        kv.code_listing(RUN, A, problem=PROBLEM, kernel="no_kernel")
    with pytest.raises(BadField, match="name one"):
        kv.code_listing(RUN, A)
    with pytest.raises(BadField, match="come compiled with the library"):
        kv.code_listing(RUN, "torch_eager", problem=PROBLEM)


def test_runs_with_code_are_those_that_name_it(bench: Bench) -> None:
    folder = recordings_file.folder()
    assert folder is not None
    apart = {run for file in folder.glob("code/*.kvc") for run in code_file.head_of(file.read_bytes()).runs}
    assert "h200-layernorm" in apart
    shipped = {RUN, "h200-matmul-ladder", "h200-attention", "h200-conv2d", *apart}
    assert bench.history.code.runs_with_code() == shipped
    run_id = bench.history.take_in(document.encode(code.run_with_cubins()))
    bench.history.take_in(document.encode(samples.run(id="without")))
    assert bench.history.code.runs_with_code() == shipped | {run_id}
