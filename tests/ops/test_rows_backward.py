"""The kernels of `cuda_backward.cu` by fibers of the processor, with planted mistakes: persistent blocks, rows from anywhere on.

Clusters of one block only. A barrier stands for the mbarrier that the warps of a block exchange their sums by, and copies arrive
at once.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
import torch
from checking import compare, inputs_of
from emulator import MODES, Emulator, Grid, Mode, Output, needs_compiler, unwritten
from rows_on_processor import text_of

from kernelviz.ops import op_named
from kernelviz.ops.kernels.split_rows import RowSplit
from kernelviz.ops.normalisation.cuda_backward import LONG_LANES, SOURCE, backward_tile, shifted_columns
from kernelviz.ops.normalisation.reference import EPS
from kernelviz.ops.normalisation.variants import named_gradients, named_inputs

KERNELS = ("row_statistics", "backward_rows", "sum_parts")
DTYPES = {"fp32": MODES[0], "bf16": MODES[1], "fp16": MODES[0]}
OPS = ("rmsnorm", "layernorm", "add_rmsnorm")
SHAPES = ((19, 1099, 8), (7, 1026, 4), (3, 4001, 3), (9, 1032, 2), (21, 261, 2))
"""Rows, their length, and blocks: rows that begin at each place in a vector, every other one, fewer rows than would be a period;
whole vectors; rows that share a block."""
INSTRUCTION = re.compile(r"asm volatile\((?:.|\n)*?\);")
WAIT = re.compile(r"do \{\n +asm volatile(?:.|\n)*?while \(!done\);")
ADDRESS = re.compile(r"\(unsigned\)__cvta_generic_to_shared\(\w+\)")
COPY = "__builtin_memset(buffer, 0, 16);\n    __builtin_memcpy(buffer, from, bytes);"


def on_processor() -> str:
    """The kernels' text, with the exchange of a block's warps by a barrier."""
    text = SOURCE.read_text()
    before, copy = text.split("int bytes) {", 1)
    assert "cp.async.cg" in copy.split("}")[0]
    text = before + "int bytes) {\n    " + COPY + copy[copy.index("\n}") :]
    text = ADDRESS.sub("0", INSTRUCTION.sub("", WAIT.sub("__syncthreads();", text)))
    text = re.sub(r"reinterpret_cast<(\w+)\*>\(memory\)", r"(\1*)emulated::dynamic_shared_pointer()", text)
    whole = text_of(SOURCE, EPS)
    headers = whole[: whole.index("using T = ELEMENT;")]
    return headers + text[text.index("using T = ELEMENT;") :].replace("+ eps)", f"+ {EPS}f)")


def right(
    name: str,
    sizes: tuple[int, int, int],
    dtype: str,
    emulator: Emulator,
    mode: Mode,
    change: Callable[[str], str] = lambda text: text,
    infinite: bool = False,
) -> bool:
    """Whether the gradients are right; of `infinite` elements of one row, whether others have none."""
    op, (m, n, blocks) = op_named(name), sizes
    problem = op.problem({"m": m, "n": n}, dtype, direction="backward")
    tensors = inputs_of(op, problem)
    tensors[0].add_(3.0)  # so that the mean of a row is not about 0
    given = named_inputs(name, tensors) | named_gradients(name, tensors)
    x_MN, dy_MN, centred = given["x_MN"], given["dy_MN"], "b_N" in given
    if infinite:
        dy_MN[1, [0, -1]] = torch.inf
    width = 16 // x_MN.element_size()
    vectors = n // width if n % width == 0 else (n + 2 * width - 2) // width
    chosen = backward_tile(vectors, 3 if "ds_MN" in given else 2, centred=centred)
    assert chosen is not None
    assert chosen.tile.cluster == 1
    tile, element = chosen.tile, RowSplit(1, lanes=64, vectors=1).defines(x_MN)["ELEMENT"]
    macros = {"ELEMENT": element, "CENTRED": str(int(centred)), "ADDS": str(int("r_MN" in given))}
    macros |= tile.defines(aligned=n % width == 0) | {"ROW_STAGES": str(chosen.stages)}
    program = emulator.program(SOURCE, KERNELS, macros, text=change(on_processor()))

    s = Output(m, n, x_MN.dtype) if "r_MN" in given else None
    row_MN = x_MN if s is None else s.matrix
    mean, scale = unwritten((m,), torch.float32), unwritten((m,), torch.float32)
    dx, dw, db = Output(m, n, x_MN.dtype), Output(1, n, x_MN.dtype), Output(1, n, x_MN.dtype)
    shift = 0 if tile.rows > 1 else n % width
    pitch = shifted_columns(n, width) if shift else 4 * -(-n // 4)
    parts = Output(2 * blocks, pitch, torch.float32)

    stored = 0 if s is None else s.matrix
    errors = [
        program.run(
            [x_MN, given.get("r_MN", 0), stored, mean, scale, m, n, 0],
            Grid(blocks=m, threads=LONG_LANES),
            mode,
            kernel="row_statistics",
        )
    ]
    pointers = [row_MN, given["w_N"], dy_MN, given.get("ds_MN", 0), mean, scale, dx.matrix, parts.matrix]
    grid = Grid(blocks=blocks, threads=tile.lanes * tile.rows, shared_bytes=chosen.shared_bytes)
    errors.append(program.run([*pointers, m, n, pitch], grid, mode, kernel="backward_rows"))
    grid = Grid(blocks=(-(-n // 32), 2 if centred else 1), threads=256)
    errors.append(
        program.run([parts.matrix, dw.matrix, db.matrix, blocks, n, pitch, shift], grid, mode, kernel="sum_parts")
    )
    written = [one for one in (s, dx, dw, db, parts) if one is not None]
    if any(errors) or not all(one.guard_is_unchanged() for one in written):
        return False
    if infinite:
        return dx.matrix.isfinite().all(dim=1).logical_not().nonzero().flatten().tolist() == [1]
    gradients = (dx.matrix, dw.matrix.view(n), db.matrix.view(n)) if centred else (dx.matrix, dw.matrix.view(n))
    return compare(op, problem, tensors, tuple(one.clone() for one in gradients)).passed


@needs_compiler
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", OPS)
def test_kernels_agree_with_the_reference(name: str, dtype: str, emulator: Emulator) -> None:
    for sizes in SHAPES:
        assert right(name, sizes, dtype, emulator, DTYPES[dtype]), sizes


@needs_compiler
@pytest.mark.parametrize("dtype", DTYPES)
def test_infinite_elements_of_one_row_do_not_reach_the_gradients_of_its_neighbours(
    dtype: str, emulator: Emulator
) -> None:
    assert right("rmsnorm", (19, 1099, 8), dtype, emulator, MODES[0], infinite=True)

    def change(text: str) -> str:
        return text.replace("row.holds(k, e) ? d[e] : 0.0f", "d[e]")

    assert not right("rmsnorm", (19, 1099, 8), dtype, emulator, MODES[0], change, infinite=True)


MISTAKES = {
    "parts are added up as if all began alike": ("i * shift % WIDTH", "shift % WIDTH"),
    "the second half of a vector is not stored": ("e < WIDTH; e += 4", "e < 4; e += 4"),
    "the last vector is not stored": (
        "if (row.vector(k) < row.vectors) {\n",
        "if (row.vector(k) < row.vectors - 1) {\n",
    ),
    "the weight is not shifted": ("beside(row, w, k)", "load_vec16(reinterpret_cast<const W*>(w) + row.vector(k))"),
    "only some parts are added up": ("i < count", "i < count - 1"),
}
HEIGHT, LENGTH, BLOCKS = 19, 1099, 8


@needs_compiler
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_the_kernel_is_found(mistake: str, emulator: Emulator) -> None:
    before, after = MISTAKES[mistake]
    assert before in on_processor()

    def change(text: str) -> str:
        return text.replace(before, after)

    assert not all(right("layernorm", (HEIGHT, LENGTH, BLOCKS), "bf16", emulator, mode, change) for mode in MODES)
