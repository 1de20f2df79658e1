"""Listings of PTX, SASS, Triton's languages and sources: the origin of each line, and what is known where there is none."""

from __future__ import annotations

import sample_code as code

from kernelviz.core.code_listing import CodeLine, CodeListing, SourceLine
from kernelviz.formats import shipped_runs
from kernelviz.machine_code.facts import facts_of
from kernelviz.machine_code.mlir_listing import mlir_listing
from kernelviz.machine_code.normalisation import normalised, normalised_ptx, normalised_sass
from kernelviz.machine_code.ptx_listing import ptx_listing
from kernelviz.machine_code.sass_listing import sass_lines, sass_listing
from kernelviz.machine_code.source_lines import Source, source_listing

PTX = """\
.version 8.7
.target sm_90a
.visible .entry linear_kernel(
\t.param .u64 linear_kernel_param_0
)
{
\t.reg .b32 \t%r<4>;
\t.loc\t1 16 0                          // linear.py:16:0
$L__func_begin0:
\tld.param.b64 \t%rd1, [linear_kernel_param_0];
\t.loc\t1 19 8                          // linear.py:19:8
\tmov.u32 \t%r1, %ctaid.x;
\t.loc\t2 43 17                         // standard.py:43:17 @[ linear.py:20:12 ]
\tadd.s32 \t%r2, %r1, 255;
\t.loc\t3 7 8, function_name $L__info_string0, inlined_at 1 21 4
\tmma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f1}, {%r1}, {%r2}, {%f1};
\t.loc\t3 8 15                          // helper.py:8:15 @[ linear.py:21:4 ]
\tst.global.v4.b32 [%rd1], {%r1, %r2, %r3, %r4};
\t.loc\t3 9 4
\tret;
}
\t.file\t1 "kernelviz/ops/linear.py"
\t.file\t2 "site-packages/triton/language/standard.py"
\t.file\t3 "kernelviz/ops/helper.py"
"""
SOURCE = """\
BLOCK = tl.constexpr(64)


@triton.jit
def helper(x):
    a = x + 1
    b = tl.exp(a)
    return b


@triton.jit
def linear_kernel(
    x_ptr,
):
    p = tl.program_id(0)
    q = tl.cdiv(p, 4)
    r = helper(q)
"""


def origins(listing: CodeListing, text: str) -> list[tuple[str, int]]:
    (line,) = [one for one in listing.lines if text in one.text]
    return [(origin.file.rpartition("/")[2], origin.line) for origin in line.origins]


def test_an_instruction_of_ptx_has_its_line_and_the_calls_around_it() -> None:
    listing = ptx_listing(PTX)
    assert origins(listing, "ctaid.x") == [("linear.py", 19)]
    assert origins(listing, "255") == [("standard.py", 43), ("linear.py", 20)]  # by LLVM's comment
    assert origins(listing, "mma.sync") == [("helper.py", 7), ("linear.py", 21)]  # by inlined_at
    assert origins(listing, ".reg") == []
    assert origins(listing, "$L__func_begin0") == []
    marks = {mark: line.text.split()[0] for line in listing.lines for mark in line.marks}
    assert marks == {"tensor": "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", "wide_store": "st.global.v4.b32"}


def test_ptx_without_lines_says_so_and_nothing_is_linked() -> None:
    bare = "\n".join(line for line in PTX.splitlines() if ".loc" not in line)
    listing = ptx_listing(bare)
    assert listing.lines_unknown == "no_line_table"
    assert not any(line.origins for line in listing.lines)
    # Two files of one name: LLVM's comment does not tell which one is meant.
    twins = PTX.replace("kernelviz/ops/helper.py", "elsewhere/linear.py")
    assert origins(ptx_listing(twins), "255") == [("standard.py", 43)]


def test_the_functions_of_a_source_of_triton_are_where_the_compiler_says() -> None:
    listing = source_listing([Source("", SOURCE)], "triton", "linear_kernel", ptx_listing(PTX).files, PTX)
    by_text = {line.text: line for line in listing.lines}
    assert by_text["def linear_kernel("].origins == (SourceLine(file="kernelviz/ops/linear.py", line=16),)
    assert by_text["    q = tl.cdiv(p, 4)"].number == 20
    # The helper is in lines 6 to 9: every line and column that is named there begins an expression of it only then.
    assert by_text["    b = tl.exp(a)"].origins == (SourceLine(file="kernelviz/ops/helper.py", line=8),)
    assert by_text["BLOCK = tl.constexpr(64)"].origins == ()
    assert by_text["BLOCK = tl.constexpr(64)"].number is None


def test_a_function_that_fits_nowhere_or_in_two_places_has_no_lines() -> None:
    def of_helper(ptx: str, source: str = SOURCE) -> set[SourceLine]:
        listing = source_listing([Source("", source)], "triton", "linear_kernel", ptx_listing(ptx).files, ptx)
        return {origin for line in listing.lines for origin in line.origins if origin.file.endswith("helper.py")}

    assert len(of_helper(PTX)) == 4
    assert of_helper(PTX.replace("3 9 4", "3 9 5")) == set()  # no expression begins there
    fewer = "\n".join(line for line in PTX.splitlines() if "3 8 15" not in line)
    assert of_helper(fewer) == set()  # two lines could be anywhere
    alike = SOURCE.replace("    b = tl.exp(a)\n    return b\n", "    a = x + 1\n" * 4)
    same_column = PTX.replace("3 8 15 ", "3 8 8 ").replace("helper.py:8:15", "helper.py:8:8").replace("3 9 4", "3 9 8")
    assert of_helper(same_column, alike) == set()  # three of five equal lines, but which ones?
    assert len(of_helper(same_column, alike.replace("    a = x + 1\n" * 2, "", 1))) == 4
    assert of_helper(PTX, SOURCE.replace("a = x + 1", "a = (x + 1")) == set()  # Python cannot read it
    assert of_helper(PTX, "def helper(): ...\n") == set()  # no function of Triton


def test_a_source_of_nvrtc_is_the_file_of_its_name() -> None:
    sources = [Source("k.cu", "int a;\nint b;\n"), Source("vec16.cuh", "int c;\n")]
    files = ("kernelviz/ops/k.cu", "kernelviz/headers/vec16.cuh", "site-packages/cuda_bf16.h")
    listing = source_listing(sources, "nvrtc", "k", files, None)
    numbered = {line.text: (line.number, line.origins) for line in listing.lines}
    assert numbered["int b;"] == (2, (SourceLine(file="kernelviz/ops/k.cu", line=2),))
    assert numbered["int c;"] == (1, (SourceLine(file="kernelviz/headers/vec16.cuh", line=1),))
    twins = source_listing(sources[:1], "nvrtc", "k", ("a/k.cu", "b/k.cu"), None)
    assert twins.lines_unknown == "other_files"
    assert not twins.files


def test_mlir_names_the_lines_of_an_operation() -> None:
    text = (
        '#loc = loc("k.py":3:0)\nmodule {\n  %0 = arith.addi %a, %b : i32 loc(#loc9)\n  tt.return loc(#loc1)\n} loc(#loc)\n'
        '#loc1 = loc(unknown)\n#loc2 = loc("standard.py":43:17)\n#loc3 = loc("x"(#loc2))\n#loc9 = loc(callsite(#loc3 at #loc))\n'
    )
    listing = mlir_listing("ttir", text)
    assert origins(listing, "arith.addi") == [("standard.py", 43), ("k.py", 3)]
    assert origins(listing, "tt.return") == []
    assert [text for text, _ in normalised(listing)] == [
        "module {",
        "  %0 = arith.addi %a, %b : i32",
        "  tt.return",
        "}",
    ]
    loop = '%0 = x loc(#loc1)\n#loc1 = loc("a"(#loc2))\n#loc2 = loc("b"(#loc1))\n'
    assert mlir_listing("ttir", loop).lines_unknown == "no_line_table"


def test_the_sass_of_a_shipped_run_is_linked_with_its_source() -> None:
    run, contents = shipped_runs.load("h200-linear_gelu-code"), shipped_runs.code("h200-linear_gelu-code")
    result = next(r for r in run.results if r.variant == "triton_fused" and r.problem.sizes["m"] == 512)
    (described,) = result.code or ()
    of = {artifact.kind: contents[artifact.digest] for artifact in described.artifacts}
    facts = facts_of(of["cubin"])
    lines = sass_lines(of["cubin"]).kernels
    listing = sass_listing(lines, facts)
    ptx = of["ptx"].decode()
    source = source_listing([Source("", of["source"].decode())], "triton", "linear_kernel", listing.files, ptx)
    (dot,) = [line for line in source.lines if "tl.dot(" in line.text]
    wgmma = [line for line in listing.lines if "HGMMA" in line.text]
    # ptxas gives one of the four to the line of the load before them.
    assert [line.origins for line in wgmma].count(dot.origins) == 3
    assert all(line.marks == ("tensor",) for line in wgmma)
    (helper,) = [line for line in source.lines if line.text.startswith("def gelu(")]
    assert helper.origins == (SourceLine(file="kernelviz/ops/kernels/triton_gelu.py", line=10),)
    # The loop is that of the facts, instruction by instruction.
    (role,) = facts[0].roles
    assert role.main_loop is not None
    loop = sass_listing(lines, facts, main_loop_only=True)
    inside = [line.address for line in loop.lines if line.address is not None]
    assert inside == [a for part in role.main_loop.ranges for a in range(part.first, part.last + 1, 16)]
    assert len(inside) == role.main_loop.iteration.instructions
    assert [line.address for line in listing.lines if line.role == 1] == inside
    first = next(line for line in listing.lines if line.address == 0)
    assert first.control is not None


def test_a_cubin_without_a_line_table_says_so_and_names_every_kernel() -> None:
    content = code.cubin("loops-sm_90")
    lines = sass_lines(content).kernels
    assert set(lines) == {kernel.name for kernel in facts_of(content)}
    listing = sass_listing(lines, facts_of(content))
    named = [line.text for line in listing.lines if line.address is None and line.text.startswith("// ")]
    assert named == [f"// {name}" for name in lines]
    if not listing.files:
        assert listing.lines_unknown == "no_line_table"
    roles = sass_listing(sass_lines(code.cubin("roles-sm_90")).kernels, facts_of(code.cubin("roles-sm_90")))
    assert {line.role for line in roles.lines} >= {1, 2}


def test_two_compilations_of_one_kernel_are_equal_once_normalised() -> None:
    a = ("/*0010*/ @!P3 LDG.E.128 R8, desc[UR4][R2.64+0x10]", ".L_x_1:", "/*0020*/ FFMA R9, R4.reuse, R7, R9")
    b = ("/*0150*/ @!P0 LDG.E.128 R40, desc[UR8][R12.64+0x10]", "/*0160*/ FFMA R1, R0, R2, R1")
    listings = [CodeListing(kind="sass", lines=tuple(CodeLine(text=t) for t in texts)) for texts in (a, b)]
    first, second = map(normalised, listings)
    assert [text for text, _ in first] == [text for text, _ in second]
    assert [number for _, number in first] == [0, 2]
    # What the instruction does differently stays: a width, an offset, a constant, the pattern of its registers.
    for other in (
        "LDG.E.64 R8, desc[UR4][R2.64+0x10]",
        "LDG.E.128 R8, desc[UR4][R2.64+0x20]",
        "LDG.E.128 R2, desc[UR4][R2.64+0x10]",
    ):
        assert normalised_sass(f"/*0010*/ @!P3 {other}") != first[0][0], other
    assert normalised_ptx("add.s32 %r1, %r1, 4;") != normalised_ptx("add.s32 %r1, %r2, 4;")
    texts = [text for text, _ in normalised(ptx_listing(PTX))]
    assert not any(".loc" in text or "//" in text or text.startswith("$L") for text in texts)
