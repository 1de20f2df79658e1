"""The change that is named first is the one that explains the measured difference, in pairs whose SASS was read by hand.

What was read (2026-11-27, kernels of NVRTC 13.0 and Triton 3.7.1 for sm_90): `triton_online` copies the row in a loop (LDGSTS,
0x790 to 0x1100) and loads it again in another (LDG, 0x1a40 to 0x1f80) after two reductions; `triton_block_per_row` loads it once
(LDG at 0x180 and 0x200). An iteration of `triton_fused` (0xca0 to 0x2930) has 64 I2F and 70 PRMT for as many multiply-adds as one
of `cuda_mma_shuffled` (0x2c20 to 0x3960), which has 2 and none. `triton_warp_specialised` has two roles with HGMMA and one with
UTMALDG. The other pairs are those of docs/why.md.
"""

from __future__ import annotations

from collections.abc import Callable

import explained_cases as cases
import pytest
from marked_kernels import HAS_TOOLS
from msgspec.structs import replace

from kernelviz.bench.code import Code
from kernelviz.bench.code_changes import changes_between, changes_of_pair, faster_side
from kernelviz.bench.code_facts import CodeFacts
from kernelviz.core import Counters, KernelCounters, Result
from kernelviz.core.code_changes import (
    AccessWidthChange,
    AtomicsChange,
    BusyMultiprocessorsChange,
    CodeChange,
    CodeChanges,
    CopiesChange,
    InstructionsChange,
    KernelCountChange,
    OccupancyChange,
    PassesChange,
    SectorsChange,
    SharedLayoutChange,
    SharedStagingChange,
    SpillsChange,
    StoresChange,
    TensorChange,
)
from kernelviz.core.code_facts import CaseFacts, KernelOfCase
from kernelviz.core.machine_code import WarpRole
from kernelviz.core.result import Figure, Kernel, Timing
from kernelviz.metrics.code_changes import code_changes, kernel_pairs, ranked
from kernelviz.metrics.comparison import compare
from kernelviz.store import Store
from kernelviz.text.code_changes import describe_cause, describe_change, describe_changes

pytest.importorskip("triton")
pytest.importorskip("cuda.core")
import explained_pairs

pytestmark = [
    pytest.mark.xdist_group("compile-0"),
    pytest.mark.skipif(not HAS_TOOLS, reason="neither triton nor the CUDA toolkit is installed: no nvdisasm"),
]
Facts = Callable[[str], tuple[CaseFacts, CaseFacts]]
CAUSES: dict[str, Callable[[CodeChange | None], bool]] = {
    "add": lambda c: isinstance(c, AccessWidthChange) and (c.space, c.a_bytes, c.b_bytes) == ("global", 4, 16),
    "transpose": lambda c: isinstance(c, SharedStagingChange) and (c.staged, c.bytes) == ("b", 4224),
    "padding": lambda c: isinstance(c, SharedLayoutChange) and (c.a_bytes, c.b_bytes) == (4096, 4224),
    # In the recorded ladder of matmul, TMA alone brings 1.51 times, and specialised warps after it nothing.
    "matmul": lambda c: isinstance(c, CopiesChange) and (c.a, c.b) == (("cp_async",), ("tma",)),
    "softmax": lambda c: isinstance(c, PassesChange) and (c.a, c.b) == (2, 1),
    "w4a16": lambda c: isinstance(c, InstructionsChange) and c.basis == "multiply_add" and c.a > 2 * c.b,
    "shuffled": lambda c: c is None,  # the weights lie in another order, which no count shows
    "scatter_add": lambda c: isinstance(c, AtomicsChange) and (c.a_global, c.b_global) == (1, 0),
    "long_rows": lambda c: isinstance(c, PassesChange) and (c.a, c.b) == (2, 1),
}


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> CodeFacts:
    return CodeFacts(Code(Store.open(tmp_path_factory.mktemp("store"))))


@pytest.fixture(scope="module")
def facts(reader: CodeFacts) -> Facts:
    """The facts of both cases of a pair. All cubins are read at once, because nvdisasm takes 0.4 s to start."""
    runs = {pair.name: cases.run_of(pair.name) for pair in cases.PAIRS}
    contents = {content.digest: content for run in runs.values() for content in run.code or ()}
    together = replace(runs["add"], code=tuple(contents.values()))
    reader.of_run(together, [result_of(pair, v) for pair in cases.PAIRS for v in (pair.a, pair.b)])

    def both(name: str) -> tuple[CaseFacts, CaseFacts]:
        pair = next(one for one in cases.PAIRS if one.name == name)
        a, b = reader.of_run(runs[name], [result_of(pair, variant) for variant in (pair.a, pair.b)])
        return a, b

    return both


def result_of(pair: cases.ExplainedPair, variant: str) -> Result:
    results = cases.run_of(pair.name).results
    return next(r for r in results if r.problem == pair.problem and r.variant == variant)


@pytest.mark.parametrize("pair", cases.PAIRS, ids=lambda pair: pair.name)
def test_the_first_change_is_the_one_that_explains(pair: cases.ExplainedPair, facts: Facts) -> None:
    a, b = facts(pair.name)
    run = cases.run_of(pair.name)
    compared = compare(run, run, variant_a=pair.a, variant_b=pair.b)
    measured = next(p for p in compared.pairs if p.problem == pair.problem)
    assert measured.kind == "faster"
    changes = ranked(a, b, faster_side(measured))
    assert CAUSES[pair.name](changes.cause), describe_changes(changes)
    if changes.cause is not None:
        assert f"| {describe_change(changes.cause)}" in explained_pairs.DOCUMENT.read_text()
    assert changes == code_changes(a, b), "the intervals of the times do not overlap"
    # The other way round, the same change is the cause: A is faster because B lacks it.
    back = ranked(b, a, "b" if changes.faster == "a" else "a")
    assert type(back.cause) is type(changes.cause)
    # If the other side had been faster, what favours this one would be no cause.
    wrong = ranked(a, b, "a" if changes.faster == "b" else "b")
    assert type(wrong.cause) is not type(changes.cause) or changes.cause is None
    assert len(wrong.changes) == len(changes.changes)


def test_without_a_difference_nothing_is_a_cause(facts: Facts) -> None:
    a, b = facts("matmul")
    none = ranked(a, b, None)
    assert none.cause is None
    assert {one.explains for one in none.changes} == {"neutral"}
    assert "no difference to explain" in str(describe_cause(none))
    same = ranked(a, a, "b")
    assert same.same_code
    assert same.changes == ()
    assert str(describe_changes(same)) == "Both sides run the same machine code"


def test_what_favours_the_slower_side_is_last_and_no_cause(facts: Facts) -> None:
    a, b = facts("scatter_add")
    listed = {type(one.change): one.explains for one in ranked(a, b, "b").changes}
    assert listed[KernelCountChange] == "against"
    assert listed[OccupancyChange] == "against"  # the kernel with atomics has twice as much, and is slower
    order = [one.explains for one in ranked(a, b, "b").changes]
    assert order == sorted(order, key=("can", "neutral", "against").index)
    a, b = facts("w4a16")
    assert {type(one.change): one.explains for one in ranked(a, b, "b").changes}[TensorChange] == "against"
    a, b = facts("softmax")
    assert {type(one.change): one.explains for one in ranked(a, b, "b").changes}[CopiesChange] == "against"


def test_kernels_that_take_the_longest_are_compared(facts: Facts) -> None:
    a, b = facts("scatter_add")
    assert [k.facts.name for k in kernel_pairs(a, b)[0][:2]] == ["scatter_atomics", "segments_sum"]
    durations = tuple(replace(k, duration_s=1.0 if k.name == "segments_place" else 1e-6) for k in b.result.kernels)
    placed = replace(b, result=replace(b.result, kernels=durations))
    assert kernel_pairs(a, placed)[0][1].facts.name == "segments_place"
    # Two runs of one variant: the others are compared with those of their names.
    assert [(x.facts.name, y.facts.name, main) for x, y, main in kernel_pairs(b, b)][1:] == [
        (name, name, False) for name in ("segments_count", "segments_allocate", "segments_place")
    ]


def test_a_library_has_no_machine_code_but_a_number_of_kernels(facts: Facts) -> None:
    a, b = facts("softmax")
    steps = tuple(Kernel(name=f"step_{n}") for n in range(5))
    library = CaseFacts(result=replace(a.result, variant="eager", kernels=steps), reason="library")
    changes = ranked(library, b, "b")
    assert changes.cause == KernelCountChange(a=5, b=1, favours="b")
    assert not changes.known
    assert str(describe_changes(changes)) == "kernels per call 5 → 1; A is a library: no machine code"
    one = ranked(replace(library, result=replace(library.result, kernels=steps[:1])), b, "b")
    assert one.cause is None
    assert str(describe_cause(one)) == "A is a library: no machine code."


@pytest.mark.parametrize(("longest_s", "explains"), [(20e-6, "can"), (96e-6, "neutral")])
def test_the_number_of_kernels_is_a_cause_where_it_explains_the_difference(
    facts: Facts, longest_s: float, explains: str
) -> None:
    """100 and 30 µs: five kernels that take as long each, or one of them takes 96 µs, and so most of what the others need."""
    a, b = facts("softmax")

    def timed(side: CaseFacts, time_s: float, kernels: tuple[Kernel, ...]) -> CaseFacts:
        figure = Figure(estimate=time_s, low=time_s * 0.99, high=time_s * 1.01)
        return replace(side, result=replace(side.result, outcome=Timing(device_cold_s=figure), kernels=kernels))

    rest = (100e-6 - longest_s) / 4
    steps = tuple(Kernel(name=f"step_{n}", duration_s=rest if n else longest_s) for n in range(5))
    library = timed(replace(a, kernels=(), reason="library"), 100e-6, steps)
    fused = timed(b, 30e-6, (Kernel(name="fused", duration_s=30e-6),))
    for changes in (ranked(library, fused, "b"), ranked(fused, library, "a")):
        assert {type(one.change): one.explains for one in changes.changes}[KernelCountChange] == explains
    warm = ranked(library, fused, "b", headline="warm")
    by_kind = {type(one.change): one.explains for one in warm.changes}
    assert by_kind[KernelCountChange] == "neutral", "the kernels were timed with flushed caches"


def test_a_kernel_that_only_follows_a_longer_one_of_a_library_is_not_compared(facts: Facts) -> None:
    a, b = facts("softmax")
    product = Kernel(name="nvjet_product", duration_s=1.0)
    follows = replace(a, result=replace(a.result, kernels=(product, *a.result.kernels)))
    changes = ranked(follows, b, "a")
    assert changes.a_library_kernel == "nvjet_product"
    assert not changes.known
    assert changes.cause is None, "its occupancy is that of the kernel that follows"
    assert "the longest kernel of A (nvjet_product) is a library's" in str(describe_changes(changes))
    # A compiler's name that the tracer does not use is no reason to compare nothing.
    renamed = tuple(replace(k, name="another name") for k in a.result.kernels)
    assert ranked(replace(a, result=replace(a.result, kernels=renamed)), b, "b").known


def test_a_grid_with_fewer_blocks_than_multiprocessors_is_named_without_machine_code_too(facts: Facts) -> None:
    a, b = facts("matmul")
    few = tuple(replace(k, grid=(8, 1, 1)) for k in a.result.kernels)
    slow = CaseFacts(result=replace(a.result, kernels=few), reason="library", multiprocessors=132)
    cause = ranked(slow, b, "b").cause
    assert isinstance(cause, BusyMultiprocessorsChange)
    assert (cause.a_blocks, cause.b_blocks) == (8, 128)
    assert str(describe_cause(ranked(slow, b, "b"))) == (
        "The likeliest reason why B is faster: multiprocessors with a block 6.1 → 97.0 %."
    )
    assert ranked(replace(slow, multiprocessors=None), b, "b").cause is None


def test_measured_sectors_come_before_what_the_code_lets_expect(facts: Facts) -> None:
    a, b = facts("transpose")

    def counted(case: CaseFacts, sectors: int) -> CaseFacts:
        kernel = KernelCounters(kernel="k", load_sectors=sectors, store_sectors=sectors)
        return replace(case, result=replace(case.result, counters=Counters(kernels=(kernel,))))

    assert isinstance(ranked(counted(a, 800), counted(b, 100), "b").cause, SectorsChange)
    # Sectors that hardly differ are no reason.
    assert isinstance(ranked(counted(a, 110), counted(b, 100), "b").cause, SharedStagingChange)


def outside_the_main_loop(case: CaseFacts) -> CaseFacts:
    """The same spills, but none of them in the main loop."""

    def without(role: WarpRole) -> WarpRole:
        assert role.main_loop is not None
        accesses = tuple(a for a in role.main_loop.iteration.accesses if a.space != "local")
        iteration = replace(role.main_loop.iteration, accesses=accesses)
        return replace(role, main_loop=replace(role.main_loop, iteration=iteration))

    (kernel,) = case.kernels
    facts = replace(kernel.facts, roles=tuple(map(without, kernel.facts.roles)))
    return replace(case, kernels=(replace(kernel, facts=facts),))


def test_results_that_are_stored_by_copies_are_a_cause_and_widths_around_a_loop_are_none(facts: Facts) -> None:
    a, b = facts("matmul")
    stores = next(one for one in ranked(a, b, "b").changes if isinstance(one.change, StoresChange))
    assert stores.explains == "can"
    assert str(describe_change(stores.change)) == "stores by TMA replaced 16-byte stores by threads"
    a, b = facts("w4a16")
    widths = next(one for one in ranked(a, b, "a").changes if isinstance(one.change, AccessWidthChange))
    assert (widths.change.outside_main, widths.explains) == (True, "neutral")


def test_spills_are_named_before_everything_that_is_not_measured() -> None:
    """The same tile with 4 and with 8 warps: docs/why.md."""

    def facts_of(kernel: explained_pairs.Compiled) -> CaseFacts:
        one = KernelOfCase(
            facts=kernel.facts,
            digest=str(kernel.threads),
            threads=kernel.threads,
            shared_bytes=kernel.dynamic_bytes,
            occupancy=kernel.occupancy,
        )
        return CaseFacts(result=result_of(cases.PAIRS[3], "triton_grouped"), kernels=(one,))

    four, eight = map(facts_of, explained_pairs.kernels_of("matmul"))
    cause = ranked(four, eight, "b").cause
    assert isinstance(cause, SpillsChange)
    assert (cause.a, cause.b, cause.a_of_iteration, cause.b_of_iteration) == (590, 0, 194, 0)
    outside = ranked(outside_the_main_loop(four), outside_the_main_loop(eight), "b")
    assert {type(one.change): one.explains for one in outside.changes}[SpillsChange] == "neutral"
    appeared = ranked(eight, four, "a")
    told = "from A to B, accesses to local memory (spills) 0 → 590, in an iteration 0 → 194."
    assert str(describe_cause(appeared)).endswith(told)


def test_the_use_case_reads_the_code_of_one_or_two_runs(reader: CodeFacts) -> None:
    pair = cases.PAIRS[0]
    run = cases.run_of(pair.name)
    a, b = (result_of(pair, variant) for variant in (pair.a, pair.b))
    changes = changes_between(reader, run, a, replace(run, id="other"), b)
    assert changes.faster == "b"
    assert isinstance(changes.cause, AccessWidthChange)
    compared = compare(run, run, variant_a=pair.a, variant_b="torch_eager")
    library = changes_of_pair(reader, compared, next(p for p in compared.pairs if p.problem == pair.problem))
    assert (library.a_missing, library.b_missing) == (None, "library")
    assert CodeChanges(a_missing="not_here").known is False
