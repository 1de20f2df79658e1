"""Every variant on a GPU: dtype × compute precision × odd and large sizes, called and replayed from a graph.

Writes docs/gpu-report.json (or the file that KERNELVIZ_GPU_REPORT names), which CI compares with the sources.
"""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "ops"))

from cases import OWN, WAITS, WRONG, Way, large_sizes, odd_sizes, variants, ways
from checking import bind, inputs_of, judged, reference_of
from device_memory import device_memory, whole_device
from figures import record_some
from gpu_report import Entry, path, write
from loaded_code import resources_by_cubin, resources_by_driver
from part_report import environment
from parts import part

from kernelviz.core.backends import BACKENDS
from kernelviz.core.code import unpacked
from kernelviz.core.errors import BadField
from kernelviz.core.problem import Problem
from kernelviz.core.result import Accuracy
from kernelviz.hardware.toolchain import no_package
from kernelviz.ops import Op, Variant, refresh
from kernelviz.text.failures import describe_failure
from kernelviz.text.notices import format_notice

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from kernelviz.ops.catalog.variant import Launch

# Nothing is timed here, so several processes may share the GPU.
pytestmark = [part("kernels"), pytest.mark.gpu, pytest.mark.timeout(600)]

HALVES = ("fp16", "bf16")
"""The 16-bit formats."""
LATE_SIZES = 1
"""A variant that takes seconds to compile is tested at this many sizes of either kind."""

MOST_COMPILATIONS = 4

KEPT_BYTES = 2**29
"""A process frees cached memory between two cases only if it has more, because that waits for the device: 27 ms in each of 15,700
cases, beside thirteen other processes, which may keep as much."""

# What runs on the processor only is checked by every test run.
CASES = [(op, v, way) for op, v in variants() if "cpu" not in v.needs for way in ways(op, v)]


@pytest.fixture(scope="module")
def entries() -> Iterator[list[Entry]]:
    """What the tests of this module found; written when the last one is over, also when some failed."""
    import torch

    if not torch.cuda.is_available():
        pytest.fail("no usable NVIDIA GPU: run this on a machine that has one")
    found: list[Entry] = []
    yield found
    write(path(), found, environment())


def problems(op: Op, variant: Variant, way: Way) -> list[Problem]:
    """Of odd and of large sizes all; but if the variant takes both 16-bit formats, each of them gets every second size, so
    that together they get all: vectors and accesses have the same widths, and other numbers follow from conversions. All formats
    of a library's variant share the sizes like this: what is asked of it is whether it is called as it must be."""
    limit = LATE_SIZES if variant.slow_compile else None
    sizes = (*odd_sizes(op)[-(limit or 0) :], *large_sizes(op)[:limit])
    of_way = [way.problem(op, s) for s in sizes]
    sharing = _sharing(op, variant, way)
    if limit or way.dtype not in sharing or (op.name, variant.name) in WRONG:
        return of_way
    admitted = [problem for problem in of_way if variant.refuses(problem) is None]
    return admitted[sharing.index(way.dtype) :: len(sharing)] or of_way


def _sharing(op: Op, variant: Variant, like: Way) -> tuple[str, ...]:
    """The formats in this direction that share the sizes: both 16-bit ones of an own variant, all of a library's."""
    same = [way.dtype for way in ways(op, variant) if (way.direction, way.compute) == (like.direction, like.compute)]
    if not BACKENDS[variant.backend].written_here:
        return tuple(dict.fromkeys(way.dtype for way in ways(op, variant) if way.direction == like.direction))
    return HALVES if set(same) >= set(HALVES) else ()


def called_and_replayed(op: Op, variant: Variant, problem: Problem) -> list[tuple[str, Accuracy]]:
    """Compare a call, then a replayed graph of the call after its inputs were filled anew and its outputs poisoned."""
    import torch

    from kernelviz.measure.session.inputs import as_tuple, fill

    inputs = inputs_of(op, problem, 0, "cuda")
    launch = bind(variant, problem, inputs)
    fill(op.of(problem), inputs, problem, 0)  # binding may have called it
    refresh(launch)
    reference = reference_of(op, problem, inputs)
    found = [("call", judged(reference, launch()))]
    if (op.name, variant.name) in WAITS:
        return found  # what waits for the device cannot be captured
    side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        launch()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    try:
        with _captured(graph, side):
            outputs = as_tuple(launch())
    except Exception:
        if BACKENDS[variant.backend].compiler:
            raise  # ours are capturable; torch.bincount, say, asks the device how long its output is
        torch.cuda.synchronize()
        return found
    for output in outputs:
        output.view(torch.uint8).fill_(255)
    fill(op.of(problem), inputs, problem, 1)  # after the outputs, which may be the inputs
    refresh(launch)
    reference = reference_of(op, problem, inputs)
    graph.replay()
    torch.cuda.synchronize()
    found.append(("graph", judged(reference, outputs)))
    return found


@contextmanager
def _captured(graph: "torch.cuda.CUDAGraph", stream: "torch.cuda.Stream") -> Iterator[None]:
    """As ``torch.cuda.graph``, but without emptying the cache of memory before each of 15,700 captures."""
    import torch

    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        graph.capture_begin()
        try:
            yield
        finally:
            graph.capture_end()


def right_or_compiled_again(op: Op, variant: Variant, problem: Problem) -> list[tuple[str, Accuracy]]:
    """`called_and_replayed`. Inductor's autotuning chooses a configuration by its time, and of row maxima in fp16 some of its
    configurations are wrong (docs/kernels.md, "A compiler that is wrong at times"). So a wrong result of Inductor is compiled
    again with empty caches, and the suite records how often. A variant that no compilation makes right fails.
    """
    import torch
    from torch._inductor.utils import fresh_cache

    answers = called_and_replayed(op, variant, problem)
    for attempt in range(1, MOST_COMPILATIONS):
        if variant.backend != "inductor" or all(accuracy.passed for _, accuracy in answers):
            break
        record_some("compiled_wrong", {f"{problem.key} | {variant.name}": attempt})
        torch._dynamo.reset()
        with fresh_cache():
            answers = called_and_replayed(op, variant, problem)
    return answers


def _answers(op: Op, variant: Variant, problem: Problem) -> list[tuple[str, Accuracy]]:
    """`right_or_compiled_again`, and afterwards little memory kept (`KEPT_BYTES`): other processes need it."""
    try:
        return right_or_compiled_again(op, variant, problem)
    finally:
        _give_memory_back()


def _give_memory_back() -> None:
    """Free the blocks that torch keeps, if they are large. If much is left, tensors of reference cycles, such as those of a
    compiled function, are collected: collecting each time would double the time of small cases."""
    import torch

    if torch.cuda.memory_reserved() <= KEPT_BYTES:
        return
    torch.cuda.empty_cache()
    if torch.cuda.memory_reserved() > KEPT_BYTES:
        gc.collect()
        torch.cuda.empty_cache()


def _needed_bytes(op: Op, problem: Problem) -> int:
    """What a case takes at its peak: inputs, a copy of them, outputs, and about five float64 copies of what the reference and its
    bound are computed of at once: a slab where the op has slabs, else all (a transpose of 600 million elements took 41 GiB)."""
    directed, tensors_bytes = op.of(problem), op.tensor_bytes(problem)
    two_copies_bytes = op.needed_bytes(problem) - tensors_bytes
    inputs_bytes = sum(tensor.size_bytes(problem.sizes, problem.dtype) for tensor in directed.inputs)
    return tensors_bytes + inputs_bytes + 5 * two_copies_bytes // 2


@pytest.mark.parametrize(("op", "variant", "way"), CASES, ids=[f"{op.name}-{v.name}-{way}" for op, v, way in CASES])
def test_variant_on_the_gpu(op: Op, variant: Variant, way: Way, entries: list[Entry]) -> None:
    """Right on every problem; a published variant that is known to be wrong is found wrong on at least one."""
    import torch

    for need in variant.needs:
        lack = no_package(BACKENDS[need]) if need in BACKENDS and BACKENDS[need].module else None
        if lack is not None:
            pytest.skip(str(format_notice(lack)))
    failures: list[str] = []
    shares: list[float] = []
    wrong = (op.name, variant.name) in WRONG
    total_bytes = torch.cuda.get_device_properties(0).total_memory
    for problem in problems(op, variant, way):
        if wrong and failures:
            break  # scatter_add by 16-bit atomics needs 25 s for a million ids of five rows
        try:
            with device_memory(_needed_bytes(op, problem), total_bytes):
                try:
                    answers = _answers(op, variant, problem)
                except torch.OutOfMemoryError:
                    answers = None  # again below, where the exception no longer keeps the tensors of its frames
            if answers is None:
                # Contexts and caches of the other processes took more than was estimated (on an H100: 43 GB of 13 processes).
                # What this one holds is freed before it waits, or another one that is alone meanwhile finds too little: on an
                # H200, a process held 46 GiB while it waited, and a copy of 16 GiB failed.
                _give_memory_back()
                with whole_device():
                    answers = _answers(op, variant, problem)
            for how, accuracy in answers:
                shares.append(accuracy.worst_of_bound if accuracy.worst_of_bound is not None else float("inf"))
                if not accuracy.passed:
                    failures.append(f"{problem.key} ({how}): {describe_failure(accuracy)}")
        except BadField:
            continue  # sizes that it refuses, with the reason
        except Exception as error:
            shares.append(float("inf"))
            failures.append(f"{problem.key}: {type(error).__name__}: {error}"[:500])
        else:
            continue
        _give_memory_back()  # what the frames of the exception held
    assert shares, "it refused every size"
    worst = max(shares)
    entries.append(
        Entry(
            op=op.name,
            variant=variant.name,
            dtype=way.dtype,
            compute=way.compute,
            direction=way.direction,
            passed=bool(failures) if wrong else not failures,
            worst_of_bound=worst if worst != float("inf") else None,
            cases=len(shares),
            source_digest=way.variant(op, variant).source_digest(),
            device=torch.cuda.get_device_name(),
            failures=failures,
        )
    )
    if wrong:
        assert failures, "the gate let it pass"
    else:
        assert not failures, "\n".join(failures)


@pytest.mark.parametrize("dtype", ["fp32", "fp16", "bf16"])
@pytest.mark.parametrize("variant", [v for o, v in OWN if o.name == "softmax"], ids=lambda v: v.name)
def test_softmax_of_special_rows(variant: Variant, dtype: str) -> None:
    """Masked, infinite, NaN and very large logits, also in rows that clusters share and that stream through them."""
    import special_values as special

    sizes = [*((n, 1) for n in special.LENGTHS), (33001, 13), (131071, 13), (131072, 13)]
    wrong = {size: special.wrong_softmax(variant, size[0], dtype, "cuda", times=size[1]) for size in sizes}
    assert {size: words for size, words in wrong.items() if words} == {}


def _largest_taken(op: Op, variant: Variant) -> tuple["Launch", "tuple[Tensor, ...]"]:
    """A launch for the last odd size that the variant takes, and its inputs."""
    way = next(iter(ways(op, variant)))
    for sizes in reversed(odd_sizes(op)):
        problem = way.problem(op, sizes)
        inputs = inputs_of(op, problem, 0, "cuda")
        try:
            return bind(variant, problem, inputs), inputs
        except BadField:
            continue
    raise AssertionError(f"{variant.name} takes none of the odd sizes")


@pytest.mark.parametrize(
    ("op", "variant"), [(o, v) for o, v in OWN if (o.name, v.name) not in WAITS], ids=lambda x: x.name
)
def test_a_call_lands_in_the_current_stream_of_torch(op: Op, variant: Variant) -> None:
    """CUDA C++ goes through another library than torch; its launch must queue behind what torch's current stream holds."""
    import torch

    from kernelviz.measure.session.inputs import as_tuple

    launch, inputs = _largest_taken(op, variant)
    output = as_tuple(launch())[0].view(torch.uint8)  # bytes: of numbers, NaN would do, but indices have none
    written = output.clone()
    output.fill_(255)
    # Used once before it counts: loading a kernel's module waits for the whole device, so for the sleep below, too.
    assert (output == 255).all().item()
    assert not (written == 255).all().item()
    before = False
    # Cycles: a tenth of a second, in which nothing after it may run. They pass while the GPU works for another process of the
    # test, so the second attempt takes ten times as many.
    for cycles in (200_000_000, 2_000_000_000):
        output.fill_(255)
        torch.cuda.synchronize()
        side, onlooker = torch.cuda.Stream(), torch.cuda.Stream()  # type: ignore[no-untyped-call]
        with torch.cuda.stream(side):
            torch.cuda._sleep(cycles)  # type: ignore[no-untyped-call]
            launch()
        with torch.cuda.stream(onlooker):
            before = bool((output == 255).all().item())
        torch.cuda.synchronize()
        assert not (output == 255).all().item()
        if before:
            break
    assert before, "the kernel ran before what its stream held"
    del inputs  # a launch need not keep them alive: their memory, used again, would hold other indices


@pytest.mark.parametrize(("op", "variant"), OWN, ids=lambda x: x.name)
def test_resources_read_from_the_code_are_those_of_the_driver(op: Op, variant: Variant) -> None:
    """Registers, local and static shared memory of every kernel of a call, by its cubin and by the driver that loads it."""
    from kernelviz.measure.compiled_code.capture import Capture

    with Capture(variant) as capture:
        launch, _ = _largest_taken(op, variant)
        capture.bound()
        launch()
    codes, contents = capture.code()
    packed = {content.digest: content for content in contents}
    compared, apart = 0, []
    for code in codes:
        for cubin in (unpacked(packed[a.digest]) for a in code.artifacts if a.kind == "cubin"):
            ours, drivers = resources_by_cubin(cubin, code.kernel), resources_by_driver(cubin, code.kernel)
            compared += 1
            if ours[:3] != drivers[:3]:
                apart.append(f"{code.kernel}: {ours} by the cubin, {drivers} by the driver")
    record_some("resources_by_driver", {f"{op.name} | {variant.name}": {"kernels": compared, "apart": apart}})
    assert apart == []
    assert compared
