"""Write the tables of docs/kernels.md made from docs/runs and the recorded runs: `python tests/documented_tables.py [FOLDER]`.

FOLDER holds documents that tests/gpu/documented_runs.py measured. They are copied into docs/runs first, JSON in the compact form.
Each table is between two comments in the page, which name it. A table has the columns of each card whose run is there.
"""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import documented_attention_tables as more
import documented_cells as cells
import documented_list
import documented_recordings
from documented_cells import CARDS, ENDING, FOLDER, UNKNOWN, Case, Cells, by_card, cases

from kernelviz.core import units
from kernelviz.formats import compact, read_file
from kernelviz.metrics.library_comparison import comparison_rows, mean_ratio
from kernelviz.metrics.samples import by_block
from kernelviz.text.sizes import format_size

PAGE = Path(__file__).parents[1] / "docs" / "kernels.md"
MARKED = re.compile(r"(<!-- runs-([a-z0-9-]+): .*? -->\n)(.*?)(<!-- /runs-\2 -->)", re.DOTALL)
EAGER = "torch_eager"
RUNGS = {
    "cuda_wgmma": ("wgmma and TMA, a tile of 64 × 128", ""),
    "cuda_wgmma_two_warpgroups": ("128 × 128", "1.33 (317 → 423, larger tile)"),
    "cuda_wgmma_specialised": ("a warpgroup that only copies", "1.18 (→ 498)"),
    "cuda_wgmma_wide": ("128 × 256", "1.22 (→ 610)"),
    "cuda_wgmma_persistent": ("persistent blocks", "1.08 (→ 660, with the stores hidden)"),
    "cuda_wgmma_cluster": ("multicast", "1.04 (704 → 734)"),
    "cuda_wgmma_tma_store": ("TMA's store", "1.02 (747 → 758)"),
    "cuda_wgmma_hilbert": ("order of a Hilbert curve", "1.01 (→ 764)"),
    "cuda_wgmma_by_size": ("tile by the size, parts of K", ""),
}
"""The rungs of the bf16 ladder: the idea, and the gain and TFLOP/s that the work log of fast.cu reports on an H100."""
ROW_SHAPES = ((14336, 4096), (6144, 4096), (4096, 14336), (28672, 4096))
ROW_RUNS = tuple(f"matmul-rows-{n}x{k}" for n, k in ROW_SHAPES)
DIMENSIONS = {f"d = {d}": more.attention_names("attention", f"-d{d}") for d in (64, 256)}
RESNET_50 = tuple(f"conv2d-resnet-50-{part}" for part in ("3x3", "3x3-stride-2", "reduce", "expand", "downsample"))
FEW = 64
"""Up to so many rows, a product is compared with a read of as many bytes as its weights have."""
LARGE_BYTES = 100e6
"""Of weights that are compared with the roof of reads, which smaller ones cannot reach."""


def variants(names: Iterable[str], card: str, *, equal_clock: bool = False) -> Cells:
    """A row for each correct variant: its time, its rate, and the best library of its run compared with it."""
    table: Cells = {}
    for case in (c for name in names for c in cases(cells.load(card, name))):
        row = [case.time, case.tera_flop_per_s, cells.with_best_library(case)]
        library = cells.best_library(case)
        if equal_clock:
            row.append(cells.at_equal_clock(case, library) if library else UNKNOWN)
        table[case.problem, f"`{case.result.variant}`"] = row
    return table


def of_variants(*names: str, equal_clock: bool = False) -> str:
    headings = ["time", "TFLOP/s", "best library / this", *(["at equal clock"] if equal_clock else [])]
    return by_card(("problem", "variant"), headings, lambda card: variants(names, card, equal_clock=equal_clock), names)


def bf16_ladder() -> str:
    name = "matmul-bf16-ladder"

    def of_card(card: str) -> Cells:
        table: Cells = {}
        before: Case | None = None
        measured = {case.result.variant: case for case in cases(cells.load(card, name))}
        for variant, (idea, published) in RUNGS.items():
            case = measured.get(variant)
            if case is not None:
                gain = cells.format_ratio(case.against(before)) if before and published else ""
                table[f"`{variant}`: {idea}", published] = [case.time, case.tera_flop_per_s, gain]
                before = case
        if EAGER in measured:
            table["cuBLAS, in the same run", ""] = [measured[EAGER].time, measured[EAGER].tera_flop_per_s, ""]
        return table

    return by_card(("4096³, bf16", "published gain"), ("time", "TFLOP/s", "gain"), of_card, [name])


def fp32_ladder() -> str:
    return of_variants("matmul-fp32-ladder", "matmul-fp32-best")


def few_rows() -> str:
    def of_card(card: str) -> Cells:
        reads = cells.load(card, "read-of-as-many-bytes")
        table: Cells = {}
        for run in filter(None, (cells.load(card, name) for name in ROW_RUNS)):
            for row in comparison_rows([run]):
                if row.own is None or row.library is None:
                    continue
                m, n, k = (row.problem.sizes[axis] for axis in "mnk")
                own, library = Case(run, row.own), Case(run, row.library)
                read = cells.case_of(reads, "cuda_persistent", n=n * k) if m <= FEW else None
                table[f"{n} × {k}", format_size(m)] = [
                    own.named_time,
                    f"{own.giga_bytes_per_s} GB/s" if m <= FEW else f"{own.tera_flop_per_s} TFLOP/s",
                    own.share_of_roof if m <= FEW and 2 * n * k >= LARGE_BYTES else "",
                    library.time,
                    cells.format_ratio(own.against(library)),
                    read.time if read else "",
                    cells.format_ratio(own.against(read)) if read else "",
                ]
        return table

    headings = (
        "best own",
        "rate",
        "of the roof",
        "cuBLAS",
        "cuBLAS / own",
        "read of as many bytes (`sum`)",
        "read / own",
    )
    return by_card(("n × k", "M"), headings, of_card, (*ROW_RUNS, "read-of-as-many-bytes"))


def few_rows_means() -> str:
    def of_card(card: str) -> Cells:
        runs = {shape: run for shape, name in zip(ROW_SHAPES, ROW_RUNS, strict=True) if (run := cells.load(card, name))}
        table: Cells = {(f"{n} × {k}",): _means([run]) for (n, k), run in runs.items()}
        return table | {("all",): _means(list(runs.values()))} if runs else {}

    return by_card(("n × k",), ("M of 1, 16, 64", "all five M"), of_card, ROW_RUNS)


def _means(runs: list[cells.Run]) -> list[str]:
    compared = comparison_rows(runs)
    few = mean_ratio(row for row in compared if row.problem.sizes["m"] <= FEW)
    every = mean_ratio(compared)
    return [UNKNOWN if mean is None else f"{mean:.3f}" for mean in (few, every)]


def linear_gelu() -> str:
    name, plain = "linear-gelu-4096", "matmul-bf16-4096"

    def of_card(card: str) -> Cells:
        cublas = cells.case_of(cells.load(card, plain), EAGER)
        table = variants([name], card)
        for case in cases(cells.load(card, name)):
            row = table[case.problem, f"`{case.result.variant}`"]
            row.append(cells.format_ratio(case.against(cublas)) if cublas else UNKNOWN)
        return table

    headings = ("time", "TFLOP/s", "best library / this", "cuBLAS's product alone / this")
    return by_card(("problem", "variant"), headings, of_card, (name, plain))


def grouped() -> str:
    name, dense_name = "grouped-matmul", "matmul-as-many-rows"

    def of_card(card: str) -> Cells:
        table: Cells = {}
        run = cells.load(card, name)
        for row in comparison_rows([run] if run else []):
            if run is None or row.own is None:
                continue
            sizes, own = row.problem.sizes, Case(run, row.own)
            dense = cells.case_of(cells.load(card, dense_name), EAGER, m=sizes["g"] * sizes["m"])
            line = [own.named_time]
            for other in (dense, *(cells.case_of(run, v, **sizes) for v in ("torch_grouped_mm", EAGER))):
                line += [other.time, cells.format_ratio(own.against(other))] if other else [UNKNOWN, UNKNOWN]
            table[f"m = {format_size(sizes['m'])}, s = {sizes['s']}",] = line
        return table

    headings = (
        *("best own", "dense product of as many rows (cuBLAS)", "dense / own"),
        *("`torch._grouped_mm`", "it / own", "a product for each group (torch)", "it / own"),
    )
    return by_card(("8 groups, n = k = 4096, bf16",), headings, of_card, (name, dense_name))


def weights_of_4_bits() -> str:
    names = {
        "w4a16-28672x4096": ("matmul-one-row-28672x4096", "matmul-rows-28672x4096"),
        "w4a16-8192x8192": ("matmul-one-row-8192x8192",),
    }

    def of_card(card: str) -> Cells:
        table: Cells = {}
        for name, wide in names.items():
            products = [cells.load(card, one) for one in wide]
            run = cells.load(card, name)
            for row in comparison_rows([run] if run else []):
                if run is None or row.own is None:
                    continue
                m, n, k = (row.problem.sizes[axis] for axis in "mnk")
                own = Case(run, row.own)
                cublas = next(filter(None, (cells.case_of(one, EAGER, m=m, n=n, k=k) for one in products)), None)
                line = [own.named_time, cells.with_best_library(own)]
                line += [cublas.time, cells.format_ratio(own.against(cublas))] if cublas else [UNKNOWN, UNKNOWN]
                table[f"{n} × {k}", format_size(m)] = line
        return table

    headings = ("best own", "best library with 4 bits / own", "cuBLAS with 16 bits", "it / own")
    return by_card(("n × k, bf16", "M"), headings, of_card, (*names, *itertools.chain(*names.values())))


def sustained() -> str:
    names = {"burst-8192": "burst", "sustained-8192": "sustained"}

    def of_card(card: str) -> Cells:
        table: Cells = {}
        for name, load in names.items():
            for case in cases(cells.load(card, name)):
                library, issue = cells.best_library(case), case.row.issue
                energy = case.result.timing.energy if case.result.timing else None
                table[load, f"`{case.result.variant}`"] = [
                    case.time,
                    case.tera_flop_per_s,
                    cells.with_best_library(case),
                    units.clock(issue.clock_hz) if issue else UNKNOWN,
                    units.percent(issue.fraction) if issue else UNKNOWN,
                    cells.at_equal_clock(case, library) if library else UNKNOWN,
                    f"{energy.joules:.3f} J" if energy else UNKNOWN,
                    units.clock(energy.sm_clock_hz) if energy else UNKNOWN,
                ]
        return table

    headings = (
        *("time", "TFLOP/s", "best library / this", "SM clock", "of the issue rate", "at equal clock"),
        *("energy of a call", "SM clock meanwhile"),
    )
    return by_card(("load", "8192³, bf16"), headings, of_card, names)


TABLES: dict[str, Callable[[], str]] = {
    "bf16-ladder": bf16_ladder,
    "bf16": lambda: of_variants(
        "matmul-bf16-4096", "matmul-bf16-8192", "matmul-bf16-16384x4096x4096", equal_clock=True
    ),
    "sustained": sustained,
    "fp32-ladder": fp32_ladder,
    "few-rows": few_rows,
    "few-rows-means": few_rows_means,
    "layouts": lambda: of_variants("transpose-matmul-4096", "matmul-nt-4096", "matmul-tt-4096", "matmul-backward-4096"),
    "linear-gelu": linear_gelu,
    "fp8": lambda: of_variants(
        "scaled-matmul-fast-8192", "scaled-matmul-fp32-8192", "block-scaled-matmul-8192", "matmul-tf32-8192"
    ),
    "grouped": grouped,
    "w4a16": weights_of_4_bits,
    "attention-ladder": more.attention_ladder,
    "attention": lambda: more.compared(more.attention_names("attention"), triton=True),
    "attention-dimensions": lambda: more.compared([n for names in DIMENSIONS.values() for n in names], triton=True),
    "attention-means": lambda: more.means({"d = 128": more.attention_names("attention"), **DIMENSIONS}),
    "attention-backward": lambda: more.compared(more.attention_names("attention-backward"), triton=True),
    "decode": more.decode,
    "conv2d-ladder": lambda: of_variants("conv2d-ladder"),
    "conv2d": lambda: more.compared((*RESNET_50, "conv2d-sd-1.5")),
    "conv2d-means": lambda: more.means({"ResNet-50": RESNET_50, "Stable Diffusion 1.5": ("conv2d-sd-1.5",)}),
    "conv-bias-relu": lambda: of_variants("conv-bias-relu"),
    "linear-cross-entropy": more.linear_cross_entropy,
    "linear-cross-entropy-backward": lambda: of_variants("linear-cross-entropy-backward"),
    "recordings": documented_recordings.summary,
    "recordings-by-op": documented_recordings.by_op,
    "recordings-misses": documented_recordings.misses,
    "memory-list-b": documented_list.summary,
    "memory-list-b-misses": documented_list.misses,
    "memory-list-b-reasons": documented_list.reasons,
}
"""By the name in the comments around a table."""


def with_tables(text: str) -> str:
    """The page with the tables of the runs that there are now."""
    return MARKED.sub(lambda found: f"{found[1]}{TABLES[found[2]]()}\n{found[4]}", text)


def add_runs(folder: Path) -> list[str]:
    """Copy the runs of a folder into docs/runs, in the compact form with the mean of each block. Returns their names."""
    files = sorted(f for f in folder.iterdir() if f.suffix in (".json", ENDING) and f.name.startswith(tuple(CARDS)))
    for file in files:
        (run,) = read_file(file)
        FOLDER.joinpath(f"{file.stem}{ENDING}").write_bytes(compact.encode(by_block(run)))
    return [file.stem for file in files]


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        print(*add_runs(Path(argument)), sep="\n")  # noqa: T201
    PAGE.write_text(with_tables(PAGE.read_text()))
