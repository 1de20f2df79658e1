"""`kernelviz code`, `export --with-code` and `kv.code`: over stored runs and documents, without a compiler."""

from __future__ import annotations

import json
import lzma
import unicodedata
from pathlib import Path

import msgspec
import pytest
import sample_code as code
from msgspec.structs import replace

import kernelviz as kv
from kernelviz.bench import Bench
from kernelviz.bench.code import CodeNotHere, describe_left_out
from kernelviz.cli import main
from kernelviz.core import Result, Run, Timing
from kernelviz.core.code import digest_of, packed
from kernelviz.core.errors import BadField, UnknownName
from kernelviz.formats import decode, document, read_file, shipped_runs
from kernelviz.machine_code.facts import facts_of
from kernelviz.store import Store
from kernelviz.text.machine_code import describe_kernel

CUBINS = Path(__file__).parents[1] / "machine_code" / "cubins"
PLUGINS = code.contents(code.PLUGIN)


@pytest.fixture
def run_id(bench: Bench) -> str:
    """A run whose document came with its code."""
    return bench.history.take_in(document.encode(code.run()))


def test_it_lists_the_artifacts_and_prints_one(bench: Bench, run_id: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.load(run_id).code is msgspec.UNSET, "the contents are in the folder"
    assert main(["code", run_id, code.VARIANT, "--size", "n=1024"]) == 0
    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    assert printed.err.startswith("add fp32 n=1024: ")
    assert "(device time, cold caches). Compiled with warps=4." in printed.err
    assert len(lines) == 1 + 3
    assert all("add_kernel" in line and "triton 3.7.1" in line and "sm_90" in line for line in lines[1:])
    assert digest_of(code.CUBIN)[:12] in lines[3]
    assert main(["code", run_id, code.VARIANT]) == 0
    merged = capsys.readouterr().out.splitlines()
    assert len(merged) == 1 + 3, "one row for the equal code of both sizes"
    assert all("2 problems, the same code" in line for line in merged[1:])
    assert main(["code", run_id, code.VARIANT, "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert len(listed) == 6
    assert {"kind": "ptx", "warps": 4, "here": True, "problem": "add fp32 n=1024"}.items() <= listed[1].items()
    # Both sizes have the same code, so that none has to be named.
    assert main(["code", run_id, code.VARIANT, "--kind", "ptx"]) == 0
    assert capsys.readouterr().out == code.PTX
    assert [a.text() for a in kv.code(run_id, code.VARIANT, kind="source", sizes={"n": 1024})] == [code.SOURCE]
    assert [a.kind for a in kv.code(run_id, code.VARIANT, problem="add fp32 n=4096")] == ["source", "ptx", "cubin"]


def test_output_has_the_exact_bytes(run_id: str, tmp_path: Path) -> None:
    file = tmp_path / "kernel.cubin"
    assert main(["code", run_id, code.VARIANT, "--kind", "cubin", "--output", str(file)]) == 0
    assert file.read_bytes() == code.CUBIN
    assert kv.code(run_id, code.VARIANT, kind="cubin")[0].content() == code.CUBIN


def test_sass_and_facts_come_from_the_cubin(bench: Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cubin = lzma.decompress((CUBINS / "arithmetic-sm_90.cubin.xz").read_bytes())
    kernels = facts_of(cubin)[:2]
    names = [kernel.name for kernel in kernels]
    described_kernel = list(map(str, describe_kernel(kernels[1])))
    assert len(names) == 2
    held = {"source": b"// the source\n", "cubin": cubin}
    run = code.run()
    described = tuple(code.code_of(name, held) for name in names)
    results = tuple(replace(r, code=described) if r.variant == code.VARIANT else r for r in run.results)
    run_id = bench.history.take_in(
        document.encode(replace(run, results=results, code=(*map(packed, held.values()), *PLUGINS)))
    )
    assert main(["code", run_id, code.VARIANT, "--kind", "sass"]) == 0
    sass = capsys.readouterr().out
    assert all(f".text.{name}" in sass for name in names)
    assert "EXIT" in sass
    assert kv.code(run_id, code.VARIANT, kind="sass")[0].text() == sass
    assert main(["code", run_id, code.VARIANT, "--facts", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    expected = [(kernel.name, kernel.registers, p.key) for p in run.plan.problems for kernel in kernels]
    assert [(f["name"], f["registers"], f["problem"]) for f in facts] == expected
    first = next(r for r in run.results if r.variant == code.VARIANT)
    assert first.timing is not None
    assert first.timing.device_cold_s is not None
    assert (facts[0]["time_s"], facts[0]["configuration"]) == (first.timing.device_cold_s.estimate, first.configuration)
    assert main(["code", run_id, code.VARIANT, "--facts", "--kernel", names[1]]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[: len(described_kernel)] == described_kernel
    assert lines[-1].startswith(
        "add fp32 n=1024, add fp32 n=4096: 128 threads and 0 bytes of shared memory per block; 16 blocks"
    )
    # A cubin of somebody else may be anything.
    other = bench.history.take_in(document.encode(code.run("other")))
    assert main(["code", other, code.VARIANT, "--kind", "sass"]) == 2
    assert "this is not a cubin that can be read" in capsys.readouterr().err


def test_a_list_asks_for_files_and_unpacks_none(run_id: str, tmp_path: Path) -> None:
    (ptx,) = kv.code(run_id, code.VARIANT, kind="ptx", sizes={"n": 1024})
    (file,) = tmp_path.rglob(f"{ptx.digest}.z")
    file.write_bytes(b"damaged")
    assert ptx.is_here
    with pytest.raises(CodeNotHere):
        ptx.text()
    assert not ptx.is_here, "a damaged file is removed when it is read"


def test_facts_of_all_variants_are_a_table_and_say_who_has_none(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    run_id = bench.history.take_in(document.encode(code.run_with_cubins()))
    assert main(["code", run_id, "--facts"]) == 0
    printed = capsys.readouterr()
    rows = [
        line.split() for line in printed.out.splitlines() if line.rstrip().endswith(tuple(code.ARITHMETIC.values()))
    ]
    assert len(rows) == 6
    vec16 = next(row for row in rows if row[:2] == ["16,777,216", "cuda_vec16"])
    assert vec16[2:5] == ["✓", "16-byte", "accesses"]
    assert vec16[vec16.index("threads") :][:2] == ["threads", "15.5"]
    assert "torch eager: the kernels come compiled with the library" in printed.err
    assert "torch compile: no code was captured when this was measured" in printed.err
    assert main(["code", run_id, "--facts", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    by_case = {(f["variant"], f["problem"]): f for f in facts}
    assert len(by_case) == 10
    assert by_case["cuda_vec16", "add fp32 n=16777216"]["waves"]["full"] == 15
    assert by_case["torch_eager", "add fp32 n=1048576"]["reason"] == "library"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nosuch", code.VARIANT], "no run 'nosuch'"),
        (["{run}", "triton_blokc_per_row"], "did you mean 'triton_block_per_row'?"),
        (["{run}", "torch_eager"], "variant: 'torch_eager' cannot be used; its backend is torch"),
        (["{run}", code.VARIANT, "--kind", "sas"], "no kind 'sas'"),
        (
            ["{run}", code.VARIANT, "--kind", "ttir"],
            "kind: 'ttir' cannot be used; variant 'triton_block_per_row' has source",
        ),
        (["{run}", code.VARIANT, "--kernel", "ad_kernel"], "did you mean 'add_kernel'?"),
        (["{run}", code.VARIANT, "--problem", "add fp32 n=1025"], "did you mean 'add fp32 n=1024'?"),
        (["{run}", code.VARIANT, "--problem", "add fp32 n=1024", "--size", "n=1024"], "leave one of them out"),
        (["{run}", code.VARIANT, "--size", "n=3"], "has no such sizes"),
        (["{run}"], "VARIANT: '' cannot be used; name a variant, or add --facts"),
        (["{run}", "--facts", "--problem", "add fp32 n=1025"], "did you mean 'add fp32 n=1024'?"),
        (["{run}", "torch_eager", "--facts"], "its backend is torch"),
        (["{run}", code.VARIANT, "-o", "x"], "--output: 'x' cannot be used; name what to write"),
        (["{run}", code.VARIANT, "--kind", "ptx", "--facts"], "--facts: 'yes' cannot be used"),
        (["{run}", code.VARIANT, "--kind", "ptx", "--json"], "leave out --kind"),
        (["{run}", code.VARIANT, "--kind", "ptx", "-o", "/nosuch/x"], "--output: '/nosuch/x' cannot be used"),
    ],
)
def test_bad_input_names_the_field_and_the_remedy(
    run_id: str, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert main(["code", *(a.format(run=run_id) for a in arguments)]) == 2
    printed = capsys.readouterr()
    assert message in printed.err
    assert printed.out == ""


def test_problems_with_different_code_and_several_kernels_must_be_named(
    bench: Bench, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    run = code.run()
    second = code.code_of("second_kernel", {"ptx": b"// second\n"})
    results = tuple(
        replace(r, code=(*(r.code or ()), second)) if r.variant == code.VARIANT and r.problem.sizes["n"] == 4096 else r
        for r in run.results
    )
    contents = (*(run.code or ()), packed(b"// second\n"))
    run_id = bench.history.take_in(document.encode(replace(run, results=results, code=contents)))
    assert main(["code", run_id, code.VARIANT, "--kind", "ptx"]) == 2
    assert "name one: add fp32 n=1024; add fp32 n=4096" in capsys.readouterr().err
    both = ["code", run_id, code.VARIANT, "--kind", "ptx", "--size", "n=4096"]
    assert main(both) == 0
    assert capsys.readouterr().out == f"// add_kernel\n{code.PTX}\n// second_kernel\n// second\n"
    assert main([*both, "-o", str(tmp_path / "x")]) == 2
    assert "--kernel: '2 kernels' cannot be used; name one: add_kernel, second_kernel" in capsys.readouterr().err
    assert main([*both, "--kernel", "second_kernel"]) == 0
    assert capsys.readouterr().out == "// second\n"


def test_a_document_with_code_opens_elsewhere_and_without_it_says_what_is_missing(
    bench: Bench, run_id: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bare, whole, mine = (tmp_path / name for name in ("bare.json", "whole.json", "mine.parquet"))
    assert main(["export", run_id, "-o", str(bare)]) == 0
    assert main(["export", run_id, "-o", str(whole), "--with-code"]) == 0
    assert "left out 1 source, 1 ptx" in capsys.readouterr().err
    assert main(["export", run_id, "-o", str(mine), "--with-code", "--with-plugin-code"]) == 0
    assert capsys.readouterr().err == ""
    assert document.digest(decode(bare.read_bytes())) == document.digest(decode(whole.read_bytes()))
    held = {c.digest for c in decode(whole.read_bytes()).code or ()}
    assert held == {digest_of(c) for c in code.OWN.values()}
    elsewhere = Bench(Store.open(tmp_path / "elsewhere"), bench.devices())
    there = elsewhere.history.take_in_all(bare.read_bytes())[0]
    with pytest.raises(CodeNotHere, match="export RUN --with-code"):
        elsewhere.history.code.of_case(elsewhere.load(there), code.VARIANT)[0].content()
    # The same run again, now with its code: the run stays, the code is added.
    assert elsewhere.history.take_in_all(whole.read_bytes()) == (there,)
    of_case = elsewhere.history.code.of_case
    assert [a.content() for a in of_case(elsewhere.load(there), code.VARIANT, kind="cubin")] == [code.CUBIN] * 2
    assert not any(a.is_here for a in of_case(elsewhere.load(there), code.MINE)), "the plug-in's code stayed at home"
    elsewhere.history.take_in_all(mine.read_bytes())
    assert all(a.is_here for a in of_case(elsewhere.load(there), code.MINE))
    elsewhere.close()
    # A file is opened as it is, too, and a document without code is written from it unless asked.
    assert main(["code", str(whole), code.VARIANT, "--kind", "source"]) == 0
    assert capsys.readouterr().out == code.SOURCE
    assert main(["export", str(whole)]) == 0
    assert "code" not in json.loads(capsys.readouterr().out)


def test_options_that_need_another_one_are_refused(run_id: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", run_id, "--with-code", "--to", "csv"]) == 2
    assert (
        "--with-code: 'csv' cannot be used; this format holds no code; write one of json, parquet"
        in capsys.readouterr().err
    )
    assert main(["export", run_id, "--with-plugin-code"]) == 2
    assert main(["export", "--all", "-o", "x", "--with-code"]) == 2
    assert "leave out --with-code" in capsys.readouterr().err
    with pytest.raises(BadField, match="with_code"):
        kv.load(run_id).save("x.md", with_code=True)
    with pytest.raises(UnknownName):
        kv.code(run_id, code.VARIANT, kind="sas")


def test_a_report_is_saved_with_its_code_on_request(run_id: str, tmp_path: Path) -> None:
    report = kv.load(run_id)
    held = {c.digest for c in kv.load(report.save(tmp_path / "run.json", with_code=True)).code or ()}
    assert held == {digest_of(c) for c in code.OWN.values()}
    assert not kv.load(report.save(tmp_path / "bare.json")).code


def test_no_code_controls_the_terminal(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    text = "int a;\t// \x1b]0;owned\x07\x1b[31m\x9b31m\u202ereversed\u2028\r\nint b;\n"
    run: Run = replace(
        code.run(),
        results=tuple(
            replace(r, code=(code.code_of("k\x1b[31m", {"source": text.encode()}),)) for r in code.run().results
        ),
        code=code.contents({"source": text.encode()}),
    )
    run_id = bench.history.take_in(document.encode(run))
    for arguments in ([], ["--json"], ["--kind", "source"]):
        assert main(["code", run_id, code.VARIANT, *arguments]) == 0
        out = capsys.readouterr().out
        assert not {c for c in out if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp")} - {"\n", "\t"}, arguments
    assert out == "int a;\t//  ]0;owned  [31m 31m reversed \nint b;\n"
    assert kv.code(run_id, code.VARIANT)[0].text() == text


def test_a_recorded_run_holds_the_most_important_code_that_fits(bench: Bench, run_id: str) -> None:
    some, left_out = bench.history.code.with_code(
        bench.load(run_id), most_bytes=len(packed(code.SOURCE.encode()).zlib) + 60
    )
    held = {c.digest for c in some.code or ()}
    assert digest_of(code.SOURCE.encode()) in held
    assert {one.reason for one in left_out} == {"plugin", "limit"}
    assert held.isdisjoint(one.artifact.digest for one in left_out)
    lines = describe_left_out(left_out)
    assert any("--most-code-mb" in line for line in lines)
    assert any("--with-plugin-code" in line for line in lines)


SHIPPED = "h200-linear_gelu-code"
"""The run that came with the package with its code."""


def test_the_code_of_the_last_size_comes_first(bench: Bench) -> None:
    run = bench.load(SHIPPED)
    last = run.results[-1].problem
    of_last = {a.digest for r in run.results if r.problem == last for code in r.code or () for a in code.artifacts}
    whole, _ = bench.history.code.with_code(run)
    sizes = {content.digest: len(content.zlib) for content in whole.code or ()}
    assert of_last < sizes.keys()
    some, left_out = bench.history.code.with_code(run, most_bytes=sum(sizes[digest] for digest in of_last))
    assert {content.digest for content in some.code or ()} == of_last
    assert {one.reason for one in left_out} == {"limit"}
    assert bench.history.code.with_code(run, most_bytes=0)[0].code == ()


def _cold_s(result: Result) -> float:
    assert isinstance(result.outcome, Timing)
    assert result.outcome.device_cold_s is not None
    return result.outcome.device_cold_s.estimate


def test_of_each_kind_the_code_of_the_fastest_variant_of_each_backend_comes_first(bench: Bench) -> None:
    run = bench.load("h200-matmul-ladder")
    last = run.results[-1].problem
    results = [r for r in run.results if r.problem == last and r.code]
    whole, _ = bench.history.code.with_code(run)
    sizes = {content.digest: len(content.zlib) for content in whole.code or ()}
    artifacts = {r.variant: [a for code in r.code or () for a in code.artifacts] for r in results}
    sources = {a.digest for of in artifacts.values() for a in of if a.kind == "source"}
    cubins = {name: [a.digest for a in of if a.kind == "cubin"] for name, of in artifacts.items()}
    fastest: dict[str | None, str] = {}
    for result in sorted(results, key=_cold_s):
        fastest.setdefault(result.backend, result.variant)
    assert 1 < len(fastest) < len(results), "some variants are not the fastest of their backend"
    first = {digest for name in fastest.values() for digest in cubins[name]}
    some, _ = bench.history.code.with_code(run, most_bytes=sum(sizes[digest] for digest in sources | first))
    held = {content.digest for content in some.code or ()}
    assert held >= sources | first
    assert held.isdisjoint(digest for name, of in cubins.items() if name not in fastest.values() for digest in of)


@pytest.mark.parametrize(
    ("variant", "kinds"),
    [
        ("torch_compile", ("source", "ttir", "ttgir", "ptx", "cubin", "sass")),
        ("triton_fused", ("source", "ttir", "ttgir", "ptx", "cubin", "sass")),
        ("cuda_wgmma_fused", ("source", "ptx", "cubin", "sass")),
        ("cutlass_fused", ("source", "ptx", "cubin", "sass")),
    ],
)
def test_the_code_of_a_run_that_came_with_the_package(
    bench: Bench, variant: str, kinds: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a GPU, and without anything in the store."""
    of_one = [SHIPPED, variant, "--size", "m=4096"]
    assert main(["code", *of_one]) == 0
    listed = capsys.readouterr().out
    assert "sm_90" in listed
    assert " no " not in listed, "each content is in the file"
    for kind in kinds:
        file = tmp_path / f"{variant}.{kind}"
        assert main(["code", *of_one, "--kind", kind, "--output", str(file)]) == 0, kind
        (first, *_) = kv.code(SHIPPED, variant, kind=kind, sizes={"m": 4096})
        assert first.content()[:200] in file.read_bytes()
    text = (tmp_path / f"{variant}.sass").read_text()
    assert "EXIT" in text
    assert ("HGMMA" in text) == (variant != "torch_compile"), "the product of torch.compile is cuBLAS's"
    assert main(["code", *of_one, "--facts"]) == 0
    assert "registers per thread" in capsys.readouterr().out


def test_the_file_of_that_run_can_be_imported_with_its_code(bench: Bench) -> None:
    """On a machine whose package does not have it."""
    file = Path(shipped_runs.folder() / f"{SHIPPED}.kvz")  # type: ignore[arg-type]
    (run,) = read_file(file)
    bench.history.add(replace(run, id="imported", code=msgspec.UNSET))
    bench.history.code.take_in([run])
    assert kv.code("imported", "cuda_wgmma_fused", kind="ptx", sizes={"m": 4096})[0].text().startswith("//")
    assert main(["code", str(file), "cuda_wgmma_fused", "--size", "m=4096"]) == 0
