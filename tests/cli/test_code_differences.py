"""How the machine code of two sides differs, over stored runs whose results name committed cubins."""

from __future__ import annotations

import json
import lzma
from pathlib import Path

import pytest
import sample_code as code
from msgspec.structs import replace

import kernelviz as kv
from kernelviz.bench import Bench
from kernelviz.bench.code_differences import code_difference, code_differences
from kernelviz.bench.comparison import compare
from kernelviz.cli import main
from kernelviz.core import Run
from kernelviz.core.code import packed
from kernelviz.core.code_changes import TensorChange
from kernelviz.formats import document
from kernelviz.machine_code.cubin import read_cubin

CUBINS = Path(__file__).parents[1] / "machine_code" / "cubins"
VARIANTS = (code.VARIANT, code.MINE)
pytest.importorskip("triton")  # its wheel has nvdisasm


def run_of(id: str, *names: str) -> Run:
    """A run in which each of the two variants has one of these kernels, the same at both sizes."""
    cubins = [lzma.decompress((CUBINS / f"{name}.cubin.xz").read_bytes()) for name in names]
    codes = {
        variant: code.code_of(read_cubin(cubin).kernels[0].name, {"cubin": cubin})
        for variant, cubin in zip(VARIANTS, cubins, strict=False)
    }
    run = code.run(id)
    results = tuple(
        replace(r, code=(codes[r.variant],)) if r.variant in codes else replace(r, code=()) for r in run.results
    )
    return replace(run, results=results, code=tuple({packed(c).digest: packed(c) for c in cubins}.values()))


def test_each_case_has_its_differences_or_the_reason(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    for run in (run_of("a", "matmul-sm_80", "matmul-sm_90"), run_of("b", "matmul-sm_90", "matmul-sm_90")):
        bench.history.take_in(document.encode(run))
    a, b = bench.load("a"), bench.load("b")
    compared = compare(a, b)
    by_variant = {one.pair.before.variant: one for one in code_differences(bench.history.code_facts, compared)}
    (changed,) = by_variant[code.VARIANT].kernels
    assert not changed.same_file
    assert {d.detail for d in changed.differences if d.fact == "technique"} == {"mma_sync", "wgmma"}
    (same,) = by_variant[code.MINE].kernels
    assert same.same_file
    assert same.differences == ()
    others = {one.unknown for name, one in by_variant.items() if name not in VARIANTS}
    assert others == {"not_captured"}
    assert kv.compare("a", "b").code_differences()[0].pair.key == compared.pairs[0].key
    changes = dict(zip((p.key for p in compared.pairs), kv.compare("a", "b").code_changes(), strict=True))
    pair = next(p for p in compared.pairs if p.before.variant == code.VARIANT)
    assert TensorChange(a="mma_sync", b="wgmma", favours="b") in [one.change for one in changes[pair.key].changes]
    pair = next(p for p in compared.pairs if p.before.variant == code.VARIANT)
    assert code_difference(bench.history.code_facts, compared, pair).kernels == (changed,)

    main(["compare", "a", "b", "--code"])
    printed = capsys.readouterr().out
    assert "wgmma: no → yes" in printed
    assert "Both sides run the same machine code" in printed
    assert "unknown: a side has no machine code" in " ".join(printed.split())
    main(["compare", "a", "b", "--code", "--json"])
    printed_json = json.loads(capsys.readouterr().out)
    assert "wgmma replaced warp-level MMA" in next(c for c in printed_json["code_changes"] if c["changes"])["summary"]
    records = printed_json["code"]
    assert {r["version_b"] for r in records if "version_b" in r} == {"3.7.1"}
    assert next(r["unknown"] for r in records if "unknown" in r) == "not_captured"


def test_two_variants_of_one_run_are_compared(bench: Bench) -> None:
    bench.history.take_in(document.encode(run_of("a", "matmul-sm_90", "matmul_persistent-sm_90")))
    a = bench.load("a")
    differences = code_differences(bench.history.code_facts, compare(a, a, variant_a=code.VARIANT, variant_b=code.MINE))
    assert [{d.detail for d in one.kernels[0].differences if d.fact == "technique"} for one in differences] == [
        {"tma", "cp_async", "vec16"}
    ] * 2


def test_what_cannot_be_read_is_unknown(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.history.take_in(document.encode(replace(run_of("a", "matmul-sm_80"), code=())))  # without the contents
    a = bench.load("a")
    b = run_of("b", "matmul-sm_90")
    missing = {one.unknown for one in code_differences(bench.history.code_facts, compare(a, b))}
    assert missing == {"not_here", "not_captured"}

    monkeypatch.setattr("kernelviz.bench.code_facts.tool_paths", lambda tool: ())
    both = compare(run_of("c", "matmul-sm_80"), b)
    assert {one.unknown for one in code_differences(bench.history.code_facts, both)} == {"no_tool", "not_captured"}
