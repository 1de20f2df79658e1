"""Compile the five pairs of docs/why.md for sm_90, without a GPU, and derive the facts of their tables.

``python tests/machine_code/explained_pairs.py`` writes the tables into the document. A pair is bound through the
product's own bind functions on tensors of the CPU, with a driver that compiles and notes launches instead of launching.
"""

from __future__ import annotations

import gzip
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from math import prod
from pathlib import Path
from typing import Any

import msgspec

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[1])]

from kernelviz.core.machine_code import CodeFacts, Instruction, KernelFacts, Occupancy  # noqa: E402
from kernelviz.machine_code.cubin import read_cubin  # noqa: E402
from kernelviz.machine_code.disassembly import instructions_of  # noqa: E402
from kernelviz.machine_code.facts import facts_of_kernel  # noqa: E402
from kernelviz.machine_code.occupancy import occupancy  # noqa: E402
from kernelviz.ops.kernels import nvrtc  # noqa: E402

ARCHITECTURE = "sm_90"
LINE_INFO = "TRITON_DISABLE_LINE_INFO"


@dataclass(frozen=True, kw_only=True)
class Compiled:
    """A kernel with its launch: grid in blocks, threads of a block, blocks of a cluster, dynamic shared memory in bytes."""

    facts: KernelFacts
    instructions: tuple[Instruction, ...]
    blocks: int
    threads: int
    cluster: int
    dynamic_bytes: int

    @property
    def work(self) -> CodeFacts:
        """An iteration of the main loop, or the whole body."""
        (role,) = self.facts.roles
        return role.work

    @property
    def occupancy(self) -> Occupancy:
        resident = occupancy(self.facts, self.threads, self.dynamic_bytes)
        assert resident is not None
        return resident

    def accesses(self, space: str, kind: str, width_bytes: int | None = None, *, work: bool = False) -> int:
        """Instructions that access memory in this way, in the whole kernel or in the work of an iteration."""
        region = self.work if work else self.facts.whole
        return sum(
            a.count
            for a in region.accesses
            if (a.space, a.kind) == (space, kind) and width_bytes in (None, a.width_bytes)
        )

    def widths(self, space: str, kind: str) -> str:
        """The widths of these accesses in bytes, the widest last."""
        widths = sorted(a.width_bytes for a in self.facts.whole.accesses if (a.space, a.kind) == (space, kind))
        return " and ".join(map(str, widths)) or "none"


class RecordingDriver:
    """See `kernelviz.ops.kernels.nvrtc.Driver`."""

    def __init__(self) -> None:
        self.launches: list[Compiled] = []
        self.arch = ARCHITECTURE

    def kernel(
        self, source: Path, name: str, defines: Mapping[str, str], shared_bytes: int, cluster: int, specific: bool
    ) -> Any:
        return name, nvrtc.compile_cubin(source, nvrtc.architecture(ARCHITECTURE, specific), defines, name)

    def launch(
        self, kernel: Any, blocks: nvrtc.Size, threads: nvrtc.Size, cluster: int, shared_bytes: int, args: object
    ) -> None:
        name, cubin = kernel
        size = [prod(value) if isinstance(value, tuple) else value for value in (blocks, threads)]
        self.launches.append(
            compiled(cubin, name, blocks=size[0], threads=size[1], cluster=cluster, dynamic_bytes=shared_bytes)
        )

    def resident(self, kernel: Any, threads: int, cluster: int, shared_bytes: int) -> int:
        return 128


def compiled(cubin: bytes, name: str, *, blocks: int, threads: int, cluster: int, dynamic_bytes: int) -> Compiled:
    file = read_cubin(cubin)
    instructions = instructions_of(cubin, file)[name]
    facts = facts_of_kernel(next(k for k in file.kernels if k.name == name), file.architecture, instructions)
    return Compiled(
        facts=facts,
        instructions=instructions,
        blocks=blocks,
        threads=threads,
        cluster=cluster,
        dynamic_bytes=dynamic_bytes,
    )


@contextmanager
def recording() -> Iterator[RecordingDriver]:
    before, driver = nvrtc.active, RecordingDriver()
    nvrtc.active = driver
    try:
        yield driver
    finally:
        nvrtc.active = before


def launched(op: str, variant: str, sizes: dict[str, int], dtype: str) -> list[Compiled]:
    """The kernels of ours that a call launches at this size, which has the configuration of the size in the document."""
    import torch

    from kernelviz.core.problem import Problem
    from kernelviz.measure.session.inputs import allocate
    from kernelviz.ops import catalogue

    problem = Problem(op=op, sizes=sizes, dtype=dtype)
    known = catalogue()[op]
    inputs = allocate(known.inputs, problem, torch.device("cpu"))
    for tensor in inputs:
        tensor.zero_()
    with recording() as driver:
        bound = known.variant_named(variant)
        launch = bound.bind(*inputs, **bound.keywords(problem))
        driver.launches.clear()
        launch()
        return driver.launches


Row = tuple[str, ...]
"""A fact, and its value on each side."""
Sides = tuple[Compiled, ...]


def row(label: str, sides: Sides, value: Callable[[Compiled], object]) -> Row:
    return label, *(str(value(side)) for side in sides)


def resources(sides: Sides) -> list[Row]:
    return [
        row("kernel", sides, lambda k: f"`{k.facts.name}`"),
        row("threads per block", sides, lambda k: k.threads),
        row("registers per thread", sides, lambda k: k.facts.registers),
        row("resident warps per SM", sides, lambda k: f"{k.occupancy.warps} of 64 (limit: {limits(k)})"),
    ]


def limits(kernel: Compiled) -> str:
    return ", ".join(name.replace("_", " ") for name in kernel.occupancy.limited_by)


def kernels_of_add() -> Sides:
    return tuple(launched("add", name, {"n": 2**16}, "fp32")[0] for name in ("cuda_scalar", "cuda_vec16"))


def add(sides: Sides) -> list[Row]:
    """Both kernels have no loop. Elements of a thread: one, and a 16-byte vector of four."""
    scalar, vec16 = sides
    per_thread = {scalar.facts.name: 1, vec16.facts.name: 4}
    assert all(k.blocks * k.threads * per_thread[k.facts.name] == 2**16 for k in sides)
    path = {k.facts.name: instructions_before_tail(k) for k in sides}
    return [
        *resources(sides),
        row("elements per thread", sides, lambda k: per_thread[k.facts.name]),
        row("widths of global loads, bytes", sides, lambda k: k.widths("global", "load")),
        row("instructions up to the first store", sides, lambda k: path[k.facts.name]),
        row("the same per element", sides, lambda k: f"{path[k.facts.name] / per_thread[k.facts.name]:g}"),
        row("bytes that the loads of a warp request", sides, lambda k: 2 * 4 * per_thread[k.facts.name] * 32),
        row(
            "loads in flight per SM, KiB",
            sides,
            lambda k: 2 * 4 * per_thread[k.facts.name] * 32 * k.occupancy.warps // 1024,
        ),
    ]


def instructions_before_tail(kernel: Compiled) -> int:
    """Instructions up to and with the first store to global memory: all that a thread needs for its elements."""
    first = next(i for i, one in enumerate(kernel.instructions) if one.mnemonic == "STG")
    return first + 1


def kernels_of_transpose() -> Sides:
    names = ("cuda_naive", "cuda_shared_tile", "cuda_padded_tile")
    return tuple(launched("transpose", name, {"m": 64, "n": 64}, "fp32")[0] for name in names)


def transpose(sides: Sides) -> list[Row]:
    """The second kernel has the tile of the third without its padding, so that both steps can be seen."""
    return [
        *resources(sides),
        row("static shared memory, bytes", sides, lambda k: k.facts.own_shared_bytes),
        row("elements per thread", sides, lambda k: k.accesses("global", "load")),
        row("widths of global loads and stores, bytes", sides,
            lambda k: f"{k.widths('global', 'load')}, {k.widths('global', 'store')}"),
        row("shared stores, shared loads", sides, lambda k: f"{k.accesses('shared', 'store')}, {k.accesses('shared', 'load')}"),
        row("block barriers", sides, lambda k: k.facts.whole.barriers.get("block", 0)),
        row("distance of the elements that a warp loads from shared memory, bytes", sides, lambda k: stride_bytes(k) or "–"),
        row("banks in which these 32 elements lie", sides, lambda k: banks(stride) if (stride := stride_bytes(k)) else "–"),
    ]  # fmt: skip


def stride_bytes(kernel: Compiled) -> int | None:
    """By how much the address of the first load of shared memory grows from lane to lane: the factor of the lane's number, which
    an instruction masks with 31 (0x1f), or shifts and masks with 31 × 128 (0xf80). None without such a load."""
    load = next((n for n, one in enumerate(kernel.instructions) if one.mnemonic == "LDS"), None)
    if load is None:
        return None
    register = kernel.instructions[load].operands[-1].partition("[")[2].rstrip("]")
    at, base = last_write(kernel, register, load)  # warp × 4 + what follows
    assert (base.opcode, base.operands[2]) == ("IMAD", "0x4"), base
    at, lanes = last_write(kernel, base.operands[3], at)
    _, factor = last_write(kernel, lanes.operands[1], at)
    if lanes.opcode == "IMAD":  # (thread & 31) × stride + the tile's address
        assert (factor.mnemonic, factor.operands[2]) == ("LOP3", "0x1f"), factor
        return int(lanes.operands[2], 16)
    # ((thread × 128) & (31 × 128)) + the tile's address
    assert (lanes.opcode, factor.mnemonic, factor.operands[2]) == ("IADD3", "LOP3", "0xf80"), (lanes, factor)
    return 0xF80 // 31


def last_write(kernel: Compiled, register: str, before: int) -> tuple[int, Instruction]:
    """The last instruction before this one that writes the register, with its number."""
    code = kernel.instructions
    number = next(n for n in range(before - 1, -1, -1) if code[n].operands and code[n].operands[0] == register)
    return number, code[number]


def banks(stride: int) -> int:
    """Banks of 4 bytes, of 32, in which the elements of the 32 lanes lie."""
    return len({lane * stride // 4 % 32 for lane in range(32)})


SOFTMAX = (("cuda_row", 131072), ("cuda_cluster", 131072), ("cuda_cluster", 262144))
"""Variants and row lengths."""
SOFTMAX_ROWS = 4


def kernels_of_softmax() -> Sides:
    return tuple(launched("softmax", name, {"m": SOFTMAX_ROWS, "n": n}, "bf16")[0] for name, n in SOFTMAX)


def softmax(sides: Sides) -> list[Row]:
    rows = SOFTMAX_ROWS
    row_bytes = {id(side): 2 * n for side, (_, n) in zip(sides, SOFTMAX, strict=True)}

    def share_on_chip(kernel: Compiled) -> str:
        """Of the row: in shared memory, and in the registers of loads of 16 bytes that no loop repeats."""
        in_registers = 0 if loops_with_loads(kernel) else 16 * kernel.accesses("global", "load", 16) * kernel.threads
        cluster = kernel.blocks // rows
        return f"{cluster * (kernel.dynamic_bytes + in_registers) / row_bytes[id(kernel)]:.0%}"

    return [
        *resources(sides),
        row("blocks per row", sides, lambda k: k.blocks // rows),
        row("cluster barriers", sides, lambda k: k.facts.whole.barriers.get("cluster", 0)),
        row("dynamic shared memory per block, KiB", sides, lambda k: f"{k.dynamic_bytes / 1024:g}"),
        row("loops with global loads", sides, loops_with_loads),
        row("global loads of 16 bytes", sides, lambda k: k.accesses("global", "load", 16)),
        row("asynchronous copies of 16 bytes", sides,
            lambda k: sum(c.count for c in k.facts.whole.copies if (c.kind, c.width_bytes) == ("cp_async", 16))),
        row("share of a row that is on chip between its sum and its division", sides, share_on_chip),
    ]  # fmt: skip


def loops_with_loads(kernel: Compiled) -> int:
    """Backward branches over a load of global memory."""
    loads = [i.address for i in kernel.instructions if i.mnemonic == "LDG"]
    return sum(any(target <= load <= branch for load in loads) for branch, target in backward_branches(kernel))


def backward_branches(kernel: Compiled) -> Iterator[tuple[int, int]]:
    """Address and target of each branch to an earlier address, without the one to itself that ends a kernel."""
    for one in kernel.instructions:
        if one.mnemonic == "BRA" and one.operands:
            target = one.operands[-1].strip("`()")
            if target.startswith("0x") and int(target, 16) < one.address:
                yield one.address, int(target, 16)


def kernels_of_matmul() -> Sides:
    """The largest tile of `triton_grouped`, 128 × 256 × 64 in three stages, with half of its warps and as it is."""
    before = os.environ.get(LINE_INFO)
    from compile_marked import POINTERS_OF_MATMUL, triton_cubin  # which sets it

    from kernelviz.ops.matmul.triton import GROUP, HALF, grouped_kernel

    tile = HALF[0]
    constants = {
        "BM": tile.bm, "BN": tile.bn, "BK": tile.bk, "GROUP": GROUP, "EVEN_M": True, "EVEN_N": True, "EVEN_K": True,
        "PRECISION": "ieee",
    }  # fmt: skip
    kernels = []
    for warps in (tile.warps // 2, tile.warps):
        cubin = triton_cubin(grouped_kernel, 90, POINTERS_OF_MATMUL, constants, warps, tile.stages)
        threads, dynamic_bytes = 32 * warps, tile.shared_bytes(2)
        kernels.append(
            compiled(cubin, "grouped_kernel", blocks=512, threads=threads, cluster=1, dynamic_bytes=dynamic_bytes)
        )
    os.environ.pop(LINE_INFO, None)
    if before is not None:
        os.environ[LINE_INFO] = before
    return tuple(kernels)


def matmul(sides: Sides) -> list[Row]:
    from kernelviz.ops.matmul.triton import HALF

    tile = HALF[0]
    return [
        *resources(sides),
        row("accumulators per thread", sides, lambda k: tile.bm * tile.bn // k.threads),
        row("stack, bytes per thread", sides, lambda k: k.facts.stack_bytes),
        row(
            "loads from, stores to local memory",
            sides,
            lambda k: f"{k.facts.spill_loads}, {k.facts.spill_stores}",
        ),
        row(
            "the same in an iteration",
            sides,
            lambda k: f"{k.accesses('local', 'load', work=True)}, {k.accesses('local', 'store', work=True)}",
        ),
        row("bytes of local memory per iteration and block", sides, lambda k: f"{local_bytes(k) * k.threads:,}"),
        row("bytes of both tiles per iteration and block", sides, lambda k: f"{tile.shared_bytes(2) // tile.stages:,}"),
        row(
            "wgmma per iteration and warpgroup",
            sides,
            lambda k: ", ".join(f"{t.count} × {'×'.join(map(str, t.shape or ()))}" for t in k.work.tensor),
        ),
        row("instructions per iteration", sides, lambda k: k.work.executable),
        row(
            "other instructions per wgmma",
            sides,
            lambda k: "none" if k.work.other_per_tensor is None else f"{k.work.other_per_tensor:.1f}",
        ),
    ]


def local_bytes(kernel: Compiled) -> int:
    """Bytes that a thread loads from and stores to local memory in an iteration."""
    return sum(a.count * a.width_bytes for a in kernel.work.accesses if a.space == "local")


def kernels_of_scatter_add() -> Sides:
    sizes = {"v": 8192, "t": 8192, "d": 1024}
    return tuple(k for name in ("cuda_atomics", "cuda_segments") for k in launched("scatter_add", name, sizes, "bf16"))


def scatter_add(launches: Sides) -> list[Row]:
    """`cuda_atomics` launches the additions first, and `cuda_segments`, which follows, the sums of the segments last."""
    first = next(number for number, k in enumerate(launches) if k.facts.name == "segments_count")
    atomics, segments, count = launches[:first], launches[first:], launches[first]
    sides = atomics[0], segments[-1]
    return [
        *resources(sides),
        ("kernels of ours per call", str(len(atomics)), str(len(segments))),
        row("floating-point atomics per element", sides, float_atomics),
        ("integer atomics per row of `src`", "0", str(count.accesses("global", "atomic"))),
        row("widths of global loads, bytes", sides, lambda k: k.widths("global", "load")),
        row("widths of global stores, bytes", sides, lambda k: k.widths("global", "store")),
        row(
            "loads of 16 bytes in an iteration",
            sides,
            lambda k: k.accesses("global", "load", 16, work=True) if k.facts.roles[0].main_loop else "no loop",
        ),
    ]


def float_atomics(kernel: Compiled) -> int:
    """Atomic additions of floating-point numbers to global memory."""
    return sum(
        one.mnemonic in ("RED", "REDG", "ATOMG") and any(m.startswith("F") for m in one.modifiers)
        for one in kernel.instructions
    )


@dataclass(frozen=True, kw_only=True)
class Pair:
    """The columns of a table, the kernels, and the facts of these."""

    columns: tuple[str, ...]
    kernels: Callable[[], Sides]
    facts: Callable[[Sides], list[Row]]


PAIRS: dict[str, Pair] = {
    "add": Pair(columns=("`cuda_scalar`", "`cuda_vec16`"), kernels=kernels_of_add, facts=add),
    "transpose": Pair(
        columns=("`cuda_naive`", "`cuda_shared_tile`", "`cuda_padded_tile`"),
        kernels=kernels_of_transpose,
        facts=transpose,
    ),
    "softmax": Pair(
        columns=("`cuda_row`", "`cuda_cluster`", "`cuda_cluster`, n = 262,144"),
        kernels=kernels_of_softmax,
        facts=softmax,
    ),
    "matmul": Pair(columns=("4 warps", "8 warps"), kernels=kernels_of_matmul, facts=matmul),
    "scatter_add": Pair(
        columns=("`cuda_atomics`", "`cuda_segments`"), kernels=kernels_of_scatter_add, facts=scatter_add
    ),
}


@cache
def kernels_of(pair: str) -> Sides:
    """The kernels of a pair, compiled once."""
    return PAIRS[pair].kernels()


def table(pair: str) -> str:
    """The table of a pair in Markdown."""
    columns = PAIRS[pair].columns
    lines = [f"| fact | {' | '.join(columns)} |", "|---" * (1 + len(columns)) + "|"]
    return "\n".join([*lines, *(f"| {' | '.join(cells)} |" for cells in PAIRS[pair].facts(kernels_of(pair)))])


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Two cases of a committed run. `run`: the id of a shipped run, or of one in docs/h200-ladders.jsonl.gz."""

    pair: str
    run: str
    problem: str
    first: str
    second: str


LADDERS = HERE.parents[1] / "docs" / "h200-ladders.jsonl.gz"
MEASURED = (
    Measured(pair="add", run="h200-add", problem="add fp32 n=268435456", first="cuda_scalar", second="cuda_vec16"),
    Measured(pair="transpose", run="20261122-071433-ea4dbc", problem="transpose fp32 m=16384 n=16384",
             first="cuda_naive", second="cuda_shared_tile"),
    Measured(pair="transpose", run="20261122-071433-ea4dbc", problem="transpose fp32 m=16384 n=16384",
             first="cuda_shared_tile", second="cuda_padded_tile"),
    Measured(pair="softmax", run="h200-softmax", problem="softmax bf16 m=1024 n=131072", first="cuda_row",
             second="cuda_cluster"),
    Measured(pair="scatter_add", run="20261122-055757-53ff3d", problem="scatter_add bf16 v=8192 t=262144 d=1024",
             first="cuda_atomics", second="cuda_segments"),
)  # fmt: skip


def times_table() -> str:
    """The cold device times of the pairs from the committed runs, in Markdown."""
    from kernelviz.core.units import digits_of, seconds, significant
    from kernelviz.formats import document, shipped_runs

    ids = {one.run for one in MEASURED} - set(shipped_runs.names())
    runs = {one.run: shipped_runs.load(one.run) for one in MEASURED if one.run not in ids}
    with gzip.open(LADDERS) as lines:
        for line in lines:
            if any(run_id.encode() in line[:400] for run_id in ids):
                run = document.decode(msgspec.json.encode(msgspec.json.decode(line)["run"]), most_bytes=None)
                runs[run.id] = run
    rows = ["| case | slower | faster | ratio | run, date |", "|---|---|---|---|---|"]
    for one in MEASURED:
        run = runs[one.run]
        figures = {r.variant: r.timing.device_cold_s for r in run.results if r.timing and r.problem.key == one.problem}
        first, second = figures[one.first], figures[one.second]
        assert first is not None
        assert second is not None
        widths = [half for figure in (first, second) if (half := figure.half_width)]
        ratio = significant(first.estimate / second.estimate, min(3, digits_of(sum(widths))))
        source = f"`{one.run}`" if one.run not in ids else f"`{LADDERS.name}`, run {one.run}"
        rows.append(
            f"| {one.problem} | `{one.first}` {seconds(first.estimate)} | `{one.second}` {seconds(second.estimate)} "
            f"| {ratio} × | {source}, {run.created_at[:10]} |"
        )
    return "\n".join(rows)


WITH_CODE = HERE.parents[1] / "docs" / "pairs"
"""Runs of two or three variants with their code, as `kernelviz run` measured them."""
COMPARED = (
    ("add", "cuda_scalar", "cuda_vec16"),
    ("transpose", "cuda_naive", "cuda_padded_tile"),
    ("matmul", "triton_grouped", "triton_warp_specialised"),
    ("softmax", "triton_online", "triton_block_per_row"),
    ("w4a16_matmul", "triton_fused", "cuda_mma_shuffled"),
)
"""The op, and the variants that are A and B."""


def causes_table() -> str:
    """The measured difference of the pairs with code, and what is said of its cause, in Markdown."""
    from kernelviz.bench import Bench
    from kernelviz.bench.code_changes import changes_of_pairs
    from kernelviz.bench.comparison import compare
    from kernelviz.formats import compact
    from kernelviz.store import Store
    from kernelviz.text.code_changes import describe_cause
    from kernelviz.text.comparison import describe_pair

    rows = ["| case | A | B | B against A | what is said of the cause |", "|---|---|---|---|---|"]
    with tempfile.TemporaryDirectory() as folder:
        facts = Bench(Store.open(Path(folder)), ()).history.code_facts
        for op, before, after in COMPARED:
            run = compact.read((WITH_CODE / f"h200-{op}.kvz").read_bytes())
            compared = compare(run, run, variant_a=before, variant_b=after)
            for pair, changes in zip(compared.pairs, changes_of_pairs(facts, compared, compared.pairs), strict=True):
                said = f"{describe_pair(pair)} | {describe_cause(changes)}"
                rows.append(f"| {pair.problem.key} | `{before}` | `{after}` | {said} |")
    return "\n".join(rows)


DOCUMENT = HERE.parents[1] / "docs" / "why.md"
BLOCKS: dict[str, Callable[[], str]] = {
    "times": times_table,
    "measured with code": causes_table,
    **{f"facts of {name}": partial(table, name) for name in PAIRS},
}


def block_pattern(name: str) -> re.Pattern[str]:
    """Finds a table of the document, between its two comments."""
    return re.compile(rf"(<!-- {re.escape(name)} -->\n)(.*?)(<!-- end -->)", re.DOTALL)


if __name__ == "__main__":
    text = DOCUMENT.read_text()
    for name, content in BLOCKS.items():
        text = block_pattern(name).sub(lambda match, content=content: f"{match[1]}{content()}\n{match[3]}", text)
    DOCUMENT.write_text(text)
