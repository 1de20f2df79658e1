"""Every variant on a GPU: dtype × compute precision × odd and large sizes, called and replayed from a graph.

Writes docs/gpu-report.json (or the file that KERNELVIZ_GPU_REPORT names), which CI compares with the sources.
"""

import platform
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "ops"))

from cases import LARGE, odd_sizes, precisions, variants
from checking import bind, compare, inputs_of
from gpu_report import Entry, path, write

from kernelviz.core.problem import Problem
from kernelviz.core.result import Accuracy
from kernelviz.ops import Op, Variant

pytestmark = [pytest.mark.gpu, pytest.mark.xdist_group("gpu"), pytest.mark.timeout(600)]

PACKAGES = ("torch", "triton", "cuda-core", "cuda-bindings", "nvidia-cuda-nvrtc")
LATE_SIZES = 3
"""A variant that takes seconds to compile is tested at this many sizes of either kind."""

# What runs on the processor only is checked by every test run.
CASES = [
    (op, v, dtype, compute) for op, v in variants() if "cpu" not in v.needs for dtype, compute in precisions(op, v)
]


@pytest.fixture(scope="module")
def entries() -> Iterator[list[Entry]]:
    """What the tests of this module found; written when the last one is over, also when some failed."""
    import torch

    if not torch.cuda.is_available():
        pytest.fail("no usable NVIDIA GPU: run this on a machine that has one")
    found: list[Entry] = []
    yield found
    environment = {
        "device": torch.cuda.get_device_name(),
        "compute_capability": list(torch.cuda.get_device_capability()),
        "python": platform.python_version(),
        "versions": {p: _version(p) for p in PACKAGES},
        "cuda": torch.version.cuda,
    }
    write(path(), found, environment)


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def problems(op: Op, variant: Variant, dtype: str, compute: str | None) -> list[Problem]:
    limit = LATE_SIZES if variant.late else None
    sizes = (*odd_sizes(op)[-(limit or 0) :], *LARGE.get(op.name, ())[:limit])
    return [op.problem(s, dtype, compute=compute) for s in sizes]


def called_and_replayed(op: Op, variant: Variant, problem: Problem) -> list[tuple[str, Accuracy]]:
    """Compare a call, then a replayed graph of the call after its inputs were filled anew and its outputs poisoned."""
    import torch

    from kernelviz.measure.tensors import as_tuple, fill

    inputs = inputs_of(op, problem, 0, "cuda")
    launch = bind(variant, problem, inputs)
    found = [("call", compare(op, problem, inputs, launch()))]
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        launch()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        outputs = as_tuple(launch())
    fill(inputs, problem, 1)
    for output in outputs:
        output.fill_(float("nan"))
    graph.replay()
    torch.cuda.synchronize()
    found.append(("graph", compare(op, problem, inputs, outputs)))
    return found


@pytest.mark.parametrize(
    ("op", "variant", "dtype", "compute"),
    CASES,
    ids=["-".join(filter(None, (op.name, v.name, dtype, compute))) for op, v, dtype, compute in CASES],
)
def test_variant_on_the_gpu(op: Op, variant: Variant, dtype: str, compute: str | None, entries: list[Entry]) -> None:
    import torch

    failures: list[str] = []
    shares: list[float] = []
    for problem in problems(op, variant, dtype, compute):
        try:
            for how, accuracy in called_and_replayed(op, variant, problem):
                shares.append(accuracy.worst_of_bound if accuracy.worst_of_bound is not None else float("inf"))
                if not accuracy.passed:
                    failures.append(f"{problem.key} ({how}): {accuracy.message}")
        except Exception as error:
            shares.append(float("inf"))
            failures.append(f"{problem.key}: {type(error).__name__}: {error}"[:500])
        torch.cuda.empty_cache()
    worst = max(shares)
    entries.append(
        Entry(
            op=op.name,
            variant=variant.name,
            dtype=dtype,
            compute=compute,
            passed=not failures,
            worst_of_bound=worst if worst != float("inf") else None,
            cases=len(shares),
            source_digest=variant.source_digest(),
            device=torch.cuda.get_device_name(),
            failures=failures,
        )
    )
    assert not failures, "\n".join(failures)


@pytest.mark.parametrize(("op", "variant"), [(o, v) for o, v in variants("triton", "cuda")], ids=lambda x: x.name)
def test_a_call_lands_in_the_current_stream_of_torch(op: Op, variant: Variant) -> None:
    """CUDA C++ goes through another library than torch; its launch must queue behind what torch's current stream holds."""
    import torch

    from kernelviz.measure.tensors import as_tuple

    dtype, compute = next(iter(precisions(op, variant)))
    problem = op.problem(odd_sizes(op)[-1], dtype, compute=compute)
    launch = bind(variant, problem, inputs_of(op, problem, 0, "cuda"))
    (output,) = as_tuple(launch())
    output.fill_(float("nan"))
    # Used once before it counts: loading a kernel's module waits for the whole device, so for the sleep below, too.
    assert output.isnan().all().item()
    torch.cuda.synchronize()
    side, onlooker = torch.cuda.Stream(), torch.cuda.Stream()
    with torch.cuda.stream(side):
        torch.cuda._sleep(200_000_000)  # cycles: a tenth of a second, in which nothing behind it may run
        launch()
    with torch.cuda.stream(onlooker):
        before = output.isnan().all().item()
    torch.cuda.synchronize()
    assert before, "the kernel ran before what its stream held"
    assert not output.isnan().any()
