"""Measures all-reduces in two ranks: proves the sum, and times all variants and a copy between the devices in shared rounds."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import torch

from kernelviz.core.reasons import NotAdmitted
from kernelviz.core.result import Failure
from kernelviz.core.workload import Measured, WorkloadCase, WorkloadMeasurement, WorkloadNote, WorkloadValue
from kernelviz.workloads.all_reduce.torch_exchange import (
    RANKS_OF_VARIANTS,
    SEED,
    Exchange,
    exchange_of,
    gradient,
    matrix_shape,
    relative_error,
    share_of_bound,
)
from kernelviz.workloads.all_reduce.torch_powersgd import low_rank_error
from kernelviz.workloads.catalog import RankContext, WorkloadContext
from kernelviz.workloads.ranks.series import (
    RankAnswers,
    RankSeries,
    in_ranks,
    mean_over_ranks,
    measured,
    refusal,
    series_of,
)
from kernelviz.workloads.ranks.torch_group import Meeting, PeerCopy, add, gathered

BYTES_OF_FP32 = 4
ACCUMULATED = 16
"""So many exchanges are summed for the error with feedback."""
MOST_ROWS_OF_SVD = 1024
_COPY, _BASELINE = "peer_copy", "fp32"


def bus_bandwidth(sent_bytes: int, ranks: int, time_s: float) -> float:
    """nccl-tests' bus bandwidth of an all-reduce, in bytes/s (doc/PERFORMANCE.md there).

    >>> bus_bandwidth(1_000_000, 2, 1e-3), bus_bandwidth(1_000_000, 8, 1e-3)
    (1000000000.0, 1750000000.0)
    """
    return sent_bytes * 2 * (ranks - 1) / ranks / time_s


def back_to_back(size_bytes: int, on_gpu: bool) -> int:
    """How many exchanges are between two stamps: as many as give a long enough time."""
    if not on_gpu:
        return 3 if size_bytes <= 2**20 else 1
    return 20 if size_bytes <= 2**22 else 5 if size_bytes <= 2**27 else 2


def measure(cases: Sequence[WorkloadCase], context: WorkloadContext) -> Iterator[WorkloadMeasurement]:
    """Measure variants at one size."""
    size_bytes = int(cases[0].values["bytes"])
    elements = size_bytes // BYTES_OF_FP32
    admitted = []
    for case in cases:
        if case.variant in RANKS_OF_VARIANTS and matrix_shape(elements) is None:
            why = NotAdmitted(text="PowerSGD takes a matrix: a gradient whose bytes are a power of two")
            yield WorkloadMeasurement(case=case, failure=Failure(stage="unavailable", reasons=(why,)))
        else:
            admitted.append(case)
    arguments = {"elements": elements, "devices": [device.id for device in context.devices]}
    for group, answers, together in in_ranks(
        admitted, context, "kernelviz.workloads.all_reduce.torch_runner:rank", arguments
    ):
        for case in group:
            yield _measurement(case, answers, together, size_bytes, context)


def rank(context: RankContext, arguments: Mapping[str, Any]) -> Any:
    """One of the ranks: returns the samples of each variant and of the copy, and the errors of each variant."""
    device, ranks = torch.device(context.torch_device), context.world_size
    elements, variants = int(arguments["elements"]), list(arguments["variants"])
    context.progress("preparing")
    own = gradient(elements, rank=context.rank, seed=SEED + context.seed, device=device)
    mean = (
        sum((one.double() for one in gathered(own, ranks)), torch.zeros(elements, dtype=torch.float64, device=device))
        / ranks
    )
    checked = {name: _checked(name, own, mean, ranks) for name in variants}
    del mean
    size_bytes, on_gpu = elements * BYTES_OF_FP32, device.type == "cuda"
    count, meet = back_to_back(size_bytes, on_gpu), Meeting(context)
    copy = PeerCopy(context, list(arguments["devices"]), context.rank, size_bytes)

    def timed(reset: Callable[[], object], call: Callable[[], object]) -> Callable[[], float]:
        def sample() -> float:
            reset()
            meet()
            return context.timed(lambda: [call() for _ in range(count)] and None) / count

        return sample

    def of_exchange(exchange: Exchange) -> Callable[[], float]:
        return timed(exchange.reset, lambda: exchange.call(add))

    exchanges = {name: exchange_of(name, own, ranks) for name in variants}
    calls = {name: of_exchange(exchange) for name, exchange in exchanges.items()}
    series = context.rounds({**calls, _COPY: timed(lambda: None, copy)}, baseline=_BASELINE, warm_up=2)
    context.progress("checking")
    meet()
    answers = RankAnswers(
        variants={
            name: msgspec.structs.replace(
                series_of(series[name]),
                counted={**counted, "sent_bytes": float(exchanges[name].sent_bytes)},
                bound_share=share if share < float("inf") else None,
            )
            for name, (counted, share) in checked.items()
        },
        beside={
            _COPY: msgspec.structs.replace(
                series_of(series[_COPY]),
                counted={"peer_access": float(copy.peer_access)},
                bound_share=0.0 if copy.arrived else None,
            )
        },
    )
    return msgspec.to_builtins(answers)


def _checked(name: str, own: torch.Tensor, mean: torch.Tensor, ranks: int) -> tuple[dict[str, float], float]:
    """The errors of a variant, and its error as a share of what a right exchange may have."""
    exchange = exchange_of(name, own, ranks)
    first = exchange.delivered(add)
    counted, share = {"gradient_error": relative_error(first, mean)}, share_of_bound(name, first, mean)
    total = first.double()
    for _ in range(ACCUMULATED - 1):
        total += exchange.delivered(add)
    counted["accumulated_error"] = relative_error(total / ACCUMULATED, mean)
    shape = matrix_shape(mean.numel())
    if name in RANKS_OF_VARIANTS and shape is not None and shape[0] <= MOST_ROWS_OF_SVD:
        counted["low_rank_error"] = low_rank_error(mean.view(shape), RANKS_OF_VARIANTS[name])
    return counted, share


def _measurement(
    case: WorkloadCase, answers: Sequence[RankAnswers], together: bool, size_bytes: int, context: WorkloadContext
) -> WorkloadMeasurement:
    of_ranks: list[RankSeries] = [answer.variants[case.variant] for answer in answers]
    ranks, sent = len(answers), int(of_ranks[0].counted["sent_bytes"])
    copies = [answer.beside[_COPY] for answer in answers]
    values: dict[str, WorkloadValue] = {
        "time_s": measured(context, of_ranks, "time_s"),
        "algorithm_bytes_per_s": measured(context, of_ranks, "time_s", lambda s: size_bytes / s),
        "bus_bytes_per_s": measured(context, of_ranks, "time_s", lambda s: bus_bandwidth(sent, ranks, s)),
    }
    notes = [] if together else [WorkloadNote(kind="not_interleaved")]
    if all(copy.bound_share is not None for copy in copies):
        values["copy_share"] = _share_of_copy(of_ranks, copies, sent, size_bytes, context)
        if case.variant == _BASELINE or not together:
            values["copy_bytes_per_s"] = measured(context, copies, "time_s", lambda s: size_bytes / s)
        if not all(copy.counted["peer_access"] for copy in copies):
            notes.append(WorkloadNote(kind="no_peer_access"))
    for figure, value in of_ranks[0].counted.items():
        values[figure] = context.counted(value)
    return WorkloadMeasurement(case=case, values=values, notes=tuple(notes), failure=refusal(of_ranks))


def _share_of_copy(
    of_ranks: Sequence[RankSeries], copies: Sequence[RankSeries], sent: int, size_bytes: int, context: WorkloadContext
) -> Measured:
    """The bus bandwidth of the exchange as a share of the bandwidth of the copy in the same round."""
    times, copied = (mean_over_ranks(of, "time_s") for of in (of_ranks, copies))
    ranks, of_copy = len(of_ranks), dict(zip(copies[0].rounds, copied, strict=True))
    shares = [
        bus_bandwidth(sent, ranks, time) * of_copy[number] / size_bytes
        for number, time in zip(of_ranks[0].rounds, times, strict=True)
    ]
    return context.measured(shares, rounds=of_ranks[0].rounds)
