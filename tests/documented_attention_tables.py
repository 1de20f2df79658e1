"""Tables of docs/kernels.md about attention, convolution and the loss, made from docs/runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import exp, inf, log

import documented_cells as cells
from documented_cells import UNKNOWN, Case, Cells, by_card, cases

from kernelviz.core import Run, units
from kernelviz.metrics.library_comparison import comparison_rows
from kernelviz.text.sizes import format_problem

LENGTHS = (1024, 4096, 16384)
LARGE_CACHE_BYTES = 250e6
"""Caches that are compared with the roof of reads; smaller ones with a read of as many bytes and an empty launch."""
RUNGS = {
    "composite_eager": ("scores in memory", ""),
    "triton_flash": ("Triton, online softmax", ""),
    "triton_descriptors": ("Triton, TMA, persistent", ""),
    "gluon_warp_specialised": ("Gluon, a warp that only copies", ""),
    "cuda_wgmma": ("CUDA C++, a warpgroup that only copies", ""),
    "cuda_wgmma_ping_pong": ("two warpgroups take turns", ""),
    "cuda_wgmma_overlap": ("exponentials beside the product with V", "1.14 (582 → 661)"),
    "cuda_wgmma_persistent": ("persistent blocks, longest tiles first", ""),
    "cuda_wgmma_three_stages": ("exponentials beside both products", "slower"),
    "cuda_wgmma_by_size": ("tile by size", ""),
}
"""The rungs of attention: the idea, and the gain that FlashAttention-3 reports for it on an H100."""


def attention_names(kind: str, ending: str = "") -> tuple[str, ...]:
    """The names of the runs of a table, by mask, heads and length."""
    heads = ("16-heads", "32-8-heads") if not ending else ("16-heads",)
    return tuple(
        f"{kind}-{mask}-{number}-{length}{ending}"
        for mask in ("full", "causal")
        for number in heads
        for length in LENGTHS
    )


def _time_s(case: Case) -> float:
    return case.row.figure.estimate if case.row.figure else inf


def compared(names: Iterable[str], *, triton: bool = False) -> str:
    """A row for each problem: the best own variant, the best library and their ratio, and with `triton` the best of Triton."""
    names = tuple(names)

    def of_card(card: str) -> Cells:
        table: Cells = {}
        for run in filter(None, (cells.load(card, name) for name in names)):
            for row in comparison_rows([run]):
                if row.own is None or row.library is None:
                    continue
                own, library = Case(run, row.own), Case(run, row.library)
                line = [
                    own.named_time,
                    own.tera_flop_per_s,
                    library.named_time,
                    cells.format_ratio(own.against(library)),
                ]
                if triton:
                    tritons = [c.result.variant for c in cases(run) if c.result.variant.startswith("triton")]
                    best = _best_at(run, row.problem.sizes, tritons)
                    line += [best.named_time, cells.format_ratio(best.against(library))] if best else [UNKNOWN, UNKNOWN]
                table[format_problem(row.problem),] = line
        return table

    headings = ["best own", "TFLOP/s", "best library", "library / own"]
    headings += ["best in Triton", "library / Triton"] if triton else []
    return by_card(("problem",), headings, of_card, names)


def _best_at(run: Run, sizes: Mapping[str, int], names: Iterable[str]) -> Case | None:
    chosen = [c for name in names if (c := cells.case_of(run, name, **sizes))]
    return min(chosen, key=_time_s, default=None)


def means(groups: Mapping[str, Iterable[str]]) -> str:
    """A row for each group of runs: geometric mean and worst of library / own."""
    groups = {title: tuple(names) for title, names in groups.items()}

    def of_card(card: str) -> Cells:
        table: Cells = {}
        for title, names in groups.items():
            ratios = [
                (pair.ratio.inverse().estimate, format_problem(row.problem))
                for run in filter(None, (cells.load(card, name) for name in names))
                for row in comparison_rows([run])
                if row.own is not None
                and row.library is not None
                and (pair := Case(run, row.own).against(Case(run, row.library))).ratio is not None
            ]
            if ratios:
                mean = exp(sum(log(ratio) for ratio, _ in ratios) / len(ratios))
                worst, problem = min(ratios)
                table[title,] = [str(len(ratios)), f"{mean:.3f}", f"{worst:.3f} ({problem})"]
        return table

    names = [name for names in groups.values() for name in names]
    return by_card(("runs",), ("problems", "geometric mean of library / own", "lowest"), of_card, names)


def attention_ladder() -> str:
    name = "attention-full-16-heads-4096"

    def of_card(card: str) -> Cells:
        table: Cells = {}
        before: Case | None = None
        run = cells.load(card, name)
        measured = {case.result.variant: case for case in cases(run)}
        for variant, (idea, published) in RUNGS.items():
            case = measured.get(variant)
            if case is not None:
                gain = cells.format_ratio(case.against(before)) if before else ""
                table[f"`{variant}`: {idea}", published] = [case.time, case.tera_flop_per_s, gain]
                before = case if variant != "cuda_wgmma_three_stages" else before
        for library in ("sdpa_cudnn", "sdpa_flash"):
            if library in measured:
                table[f"`{library}`, in the same run", ""] = [
                    measured[library].time,
                    measured[library].tera_flop_per_s,
                    "",
                ]
        return table

    lead = ("4 × 4,096 positions, 16 heads of 128, all keys, bf16", "published gain")
    return by_card(lead, ("time", "TFLOP/s", "gain"), of_card, [name])


def decode() -> str:
    """Each cache: the best own variant, its share of the read roof or of a read of as many bytes, and the best library."""
    names = ("attention-decode", "paged-attention-decode")
    others = ("read-of-a-cache", "empty-launch")

    def of_card(card: str) -> Cells:
        reads, empty = (cells.load(card, name) for name in others)
        launch = min((c.row.figure.estimate for c in cases(empty) if c.row.figure), default=None)
        table: Cells = {}
        for run in filter(None, (cells.load(card, name) for name in names)):
            for row in comparison_rows([run]):
                if row.own is None:
                    continue
                sizes, own = row.problem.sizes, Case(run, row.own)
                elements = 2 * sizes["b"] * sizes["l"] * sizes["hk"] * sizes["d"]
                read = cells.case_of(reads, "cuda_persistent", n=elements)
                line = [own.named_time, f"{own.giga_bytes_per_s} GB/s", own.share_of_roof]
                if read and read.row.figure and own.row.figure and launch is not None:
                    share = (read.row.figure.estimate + launch) / own.row.figure.estimate
                    line += [read.time, f"{share * 100:.0f} %"]
                else:
                    line += [UNKNOWN, UNKNOWN]
                library = Case(run, row.library) if row.library else None
                line += [cells.format_ratio(own.against(library))] if library else [UNKNOWN]
                table[format_problem(row.problem), units.size_bytes(2 * elements)] = line
        return table

    headings = (
        "best own",
        "rate",
        "of the read roof",
        "read of as many bytes",
        "it and an empty launch / own",
        "best library / own",
    )
    return by_card(("problem", "cache"), headings, of_card, (*names, *others))


def linear_cross_entropy() -> str:
    """Time and peak memory of each variant, and the plain product beside them."""
    name, plain = "linear-cross-entropy", "linear-cross-entropy-product"

    def of_card(card: str) -> Cells:
        product = cells.case_of(cells.load(card, plain), "torch_eager")
        table: Cells = {}
        for case in cases(cells.load(card, name)):
            memory = case.result.peak_memory
            table[f"`{case.result.variant}`",] = [
                case.time,
                case.tera_flop_per_s,
                cells.format_ratio(case.against(product)) if product else UNKNOWN,
                units.size_bytes(memory.call_bytes) if memory else UNKNOWN,
            ]
        return table

    headings = ("time", "TFLOP/s", "plain product / this", "peak memory of a call")
    return by_card(("m 8,192, h 4,096, v 128,256, bf16",), headings, of_card, (name, plain))
