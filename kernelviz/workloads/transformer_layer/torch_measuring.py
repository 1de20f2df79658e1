"""Measure a transformer layer: the whole, its parts behind the part before them, the rest, and the proof that it is right.

On a GPU the layer is captured as a CUDA graph, and times are the device's stamps of its kernels. The parts of the eager layer are
graphs of two parts, of which the second counts. Those of the compiled layer are the kernels of inductor's groups, cut from the
graph of the whole. On a processor, calls are timed by the host's clock.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import median
from typing import Any

import msgspec
import torch
from torch import Tensor

from kernelviz.core.workload import (
    Clock,
    Measured,
    WorkloadCase,
    WorkloadGroup,
    WorkloadMeasurement,
    WorkloadNote,
    WorkloadValue,
)
from kernelviz.models.parts import LayerCall
from kernelviz.workloads.catalog import RankFailed, TracedCall, WorkloadContext
from kernelviz.workloads.transformer_layer import torch_inductor_groups as inductor_groups
from kernelviz.workloads.transformer_layer.torch_build import build, call_of
from kernelviz.workloads.transformer_layer.torch_graph_slices import GraphSlices
from kernelviz.workloads.transformer_layer.torch_inductor_groups import Groups
from kernelviz.workloads.transformer_layer.torch_layer import Layer
from kernelviz.workloads.transformer_layer.torch_library_calls import between_marks, counts_between
from kernelviz.workloads.transformer_layer.torch_profiled import ProfilerAnswer, ProfilerRequest
from kernelviz.workloads.transformer_layer.torch_reference import Reference, error_of, failure_of, reference_of

REST = ("layer_s", "groups_s", "rest_s", "rest_share")


@dataclass
class Prepared:
    """A variant that is ready to be measured. `sample`: a round, which gives the time of the layer and of each group."""

    groups: Groups
    sample: Callable[[], dict[str, float]]
    error: float
    notes: list[WorkloadNote] = field(default_factory=list)
    kernels: tuple[tuple[str, ...], ...] = ()
    kernels_s: list[list[float]] = field(default_factory=list)


def measure(cases: Sequence[WorkloadCase], context: WorkloadContext) -> Iterator[WorkloadMeasurement]:
    """Measure the variants of the layer in shared rounds."""
    preset, call = call_of(cases[0].values)
    prepared: dict[str, Prepared] = {}
    with torch.no_grad():
        layer, x_TH = build(preset, call, context.torch_device, context.seed)
        reference = reference_of(layer, x_TH)
        for case in cases:
            with context.case(case):
                compiled = case.variant == "compiled"
                context.progress("compiling" if compiled else "preparing", case.variant)
                prepared[case.variant] = _prepare(layer, x_TH, reference, context, compiled=compiled)
        calls = {name: one.sample for name, one in prepared.items()}
        series = context.rounds(calls, baseline="eager", warm_up=2)
        del layer, reference
    for case in cases:
        if case.variant not in series:
            continue
        with context.case(case):
            one, samples = prepared[case.variant], series[case.variant]
            try:
                profiled = _profile(case, context)
            except RankFailed as error:  # it costs its own figures, not the times that were measured before
                profiled = None
                one.notes.append(WorkloadNote(kind="other", text=f"torch.profiler has no sums: {error.text or error}"))
            yield _measurement(case, one, samples, profiled, call, context)


def _prepare(layer: Layer, x_TH: Tensor, reference: Reference, context: WorkloadContext, *, compiled: bool) -> Prepared:
    call: Callable[[Tensor], Tensor] = layer
    groups = Groups(tuple((name,) for name in layer.names))
    if compiled:
        call, groups = inductor_groups.compile_layer(layer, x_TH)
    error = error_of(layer, call, x_TH, reference)
    if context.device.kind != "cuda":
        return _on_host(layer, call, x_TH, groups, error, context, compiled=compiled)
    for _ in range(3):
        call(x_TH)
    graph, output = captured(lambda: call(x_TH), keep_graph=compiled)
    if compiled:
        graph.instantiate()
    try:
        if compiled:
            return _from_graph(graph, call, x_TH, groups, error, context, keep=output)
        return _by_pairs(layer, x_TH, graph, groups, error, context, keep=output)
    except inductor_groups.NotAssignable as reason:
        note = WorkloadNote(kind="groups_unknown", text=str(reason))
        return Prepared(Groups(()), lambda: {"layer_s": context.traced([graph.replay])[0].busy_s()}, error, [note])


def states_of(layer: Layer, x_TH: Tensor) -> list[dict[str, Tensor]]:
    """The tensors before each part. A part replaces tensors of the state, and writes into none but the cache."""
    state, states = {"x": x_TH}, []
    for name in layer.names:
        states.append(dict(state))
        layer.part(name)(state)
    return states


def _on_host(
    layer: Layer,
    call: Callable[[Tensor], Tensor],
    x_TH: Tensor,
    groups: Groups,
    error: float,
    context: WorkloadContext,
    *,
    compiled: bool,
) -> Prepared:
    def whole() -> float:
        return context.timed_by_host(lambda: call(x_TH))

    if compiled:
        note = WorkloadNote(kind="groups_unknown", text="they run inside of one call of the processor")
        return Prepared(Groups(()), lambda: {"layer_s": whole()}, error, [note])
    states = states_of(layer, x_TH)

    def part(number: int) -> float:
        before = (number - 1) % len(layer.names)
        layer.part(layer.names[before])(dict(states[before]))
        function, state = layer.part(layer.names[number]), dict(states[number])
        return context.timed_by_host(lambda: function(state))

    def sample() -> dict[str, float]:
        return _of_times(whole(), [part(number) for number in range(len(layer.names))])

    return Prepared(groups, sample, error)


def _of_times(layer_s: float, group_s: Sequence[float]) -> dict[str, float]:
    total = sum(group_s)
    named = {f"group_{number}": seconds for number, seconds in enumerate(group_s)}
    return {
        "layer_s": layer_s,
        "groups_s": total,
        "rest_s": layer_s - total,
        "rest_share": (layer_s - total) / layer_s,
        **named,
    }


def _by_pairs(
    layer: Layer, x_TH: Tensor, whole: Any, groups: Groups, error: float, context: WorkloadContext, *, keep: object
) -> Prepared:
    """The eager layer: the graph of the whole, and one of each part with the part before it."""
    states = states_of(layer, x_TH)

    def run(number: int) -> object:
        state = dict(states[number])
        layer.part(layer.names[number])(state)
        return state  # its tensors live as long as the graph

    count = len(layer.names)

    def run_pair(number: int) -> object:
        return run((number - 1) % count), run(number)

    single = [captured(partial(run, number)) for number in range(count)]
    pairs = [captured(partial(run_pair, number)) for number in range(count)]
    alone = context.traced([graph.replay for graph, _ in single])
    sizes = [len(one.records) for one in alone]
    del single
    return _sampled(
        whole.replay, [graph.replay for graph, _ in pairs], sizes, groups, error, context, keep=(pairs, keep)
    )


def _from_graph(
    graph: Any,
    call: Callable[[Tensor], Tensor],
    x_TH: Tensor,
    groups: Groups,
    error: float,
    context: WorkloadContext,
    *,
    keep: object,
) -> Prepared:
    """The compiled layer: the graph of the whole, and slices of it. Errors: NotAssignable."""
    whole = context.traced([graph.replay])[0]
    names = [record.name for record in whole.records]
    notes: list[WorkloadNote] = []
    counts = None
    try:
        counts = _counts(call, x_TH, names, context)
    except RuntimeError as failure:  # then library calls in a row are one group, and everything else is measured
        notes.append(WorkloadNote(kind="other", text=f"kernels of library calls were not counted: {failure}"))
    assigned = inductor_groups.assign(names, groups, counts)
    slices = GraphSlices(graph.raw_cuda_graph(), len(whole.records))
    sizes = assigned.sizes
    replays = [slices.replay_of(*_with_predecessor(number, sizes)) for number in range(len(sizes))]
    prepared = _sampled(graph.replay, replays, sizes, assigned, error, context, keep=(keep, slices))
    prepared.notes += notes
    return prepared


def _counts(
    call: Callable[[Tensor], Tensor], x_TH: Tensor, kernels: Sequence[str], context: WorkloadContext
) -> tuple[int, ...] | None:
    """How many kernels each library call launches, by a second graph in which each is between two marks; None if the graph has
    other kernels than the first one."""

    def mark() -> None:
        torch.cuda._sleep(1)  # type: ignore[no-untyped-call]  # nothing of a layer launches its kernel

    def work() -> None:
        mark()  # the first record, which tells the name of the mark
        call(x_TH)

    with between_marks(mark):
        graph, _ = captured(work)
    first, *records = (record.name for record in context.traced([graph.replay])[0].records)
    return counts_between(records, first, kernels)


def _with_predecessor(number: int, sizes: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """The ranges of nodes of the group before and of the group itself; before the first one runs the last one."""
    begins = [sum(sizes[:i]) for i in range(len(sizes))]
    before = (number - 1) % len(sizes)
    return (begins[before], begins[before] + sizes[before]), (begins[number], begins[number] + sizes[number])


def _sampled(
    whole: Callable[[], object],
    replays: Sequence[Callable[[], object]],
    sizes: Sequence[int],
    groups: Groups,
    error: float,
    context: WorkloadContext,
    *,
    keep: object,
) -> Prepared:
    """A variant whose round replays the whole and each group, in random order. `keep`: what must live as long."""
    order = random.Random(context.seed)
    before = [sizes[(number - 1) % len(sizes)] for number in range(len(sizes))]
    first = context.traced([whole, *replays])
    _check(first, sizes, before)
    begins = [sum(sizes[:number]) for number in range(len(sizes))]
    names = [record.name for record in first[0].records]
    kernels = tuple(tuple(names[b : b + n]) for b, n in zip(begins, sizes, strict=True))
    prepared = Prepared(groups, lambda: {}, error, kernels=kernels)

    def sample() -> dict[str, float]:
        numbered = list(enumerate((whole, *replays)))
        order.shuffle(numbered)
        traced = context.traced([replay for _, replay in numbered])
        by_number = {number: one for (number, _), one in zip(numbered, traced, strict=True)}
        layer = by_number[0]
        prepared.kernels_s.append([(r.end_ns - r.start_ns) / 1e9 for r in layer.records])
        times = [by_number[number + 1].busy_s(after=before[number]) for number in range(len(sizes))]
        return _of_times(layer.busy_s(), times)

    sample.resources = keep  # type: ignore[attr-defined]
    prepared.sample = sample
    return prepared


def _check(traced: Sequence[TracedCall], sizes: Sequence[int], before: Sequence[int]) -> None:
    """Raise NotAssignable unless each group launches on its own what it launches in the whole."""
    names = [record.name for record in traced[0].records]
    if sum(sizes) != len(names):
        raise inductor_groups.NotAssignable(f"the layer launches {len(names)} kernels, its parts launch {sum(sizes)}")
    begin = 0
    for number, (size, one) in enumerate(zip(sizes, traced[1:], strict=True)):
        own = [record.name for record in one.records[before[number] :]]
        if own != names[begin : begin + size]:
            raise inductor_groups.NotAssignable(
                f"part {number} launches {own}, within the layer {names[begin : begin + size]}"
            )
        begin += size


def captured(work: Callable[[], object], *, keep_graph: bool = False) -> tuple[Any, object]:
    """A CUDA graph of what `work` enqueues, and what it returned. `keep_graph`: the nodes can be read (torch.cuda.CUDAGraph).

    Restores the current stream even if the capture fails; `torch.cuda.graph` alone would leave its capture stream current.
    """
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph(keep_graph=True) if keep_graph else torch.cuda.CUDAGraph()
    with torch.cuda.stream(torch.cuda.current_stream()), torch.cuda.graph(graph):
        result = work()
    return graph, result


def _profile(case: WorkloadCase, context: WorkloadContext) -> ProfilerAnswer | None:
    """The sums by torch.profiler in a new process; None on a processor, where it sees no kernels."""
    if context.device.kind != "cuda":
        return None
    context.progress("checking", case.variant)
    request = ProfilerRequest(values=case.values, compiled=case.variant == "compiled", seed=context.seed)
    answer = context.fresh("kernelviz.workloads.transformer_layer.torch_profiled:profile_layer", request)
    return ProfilerAnswer(names=tuple(answer["names"]), calls_s=tuple(map(tuple, answer["calls_s"])))


def _measurement(
    case: WorkloadCase,
    one: Prepared,
    series: Any,
    profiled: ProfilerAnswer | None,
    call: LayerCall,
    context: WorkloadContext,
) -> WorkloadMeasurement:
    clock: Clock = "cupti" if context.device.kind == "cuda" else "host"
    values: dict[str, WorkloadValue] = {
        name: context.measured(
            series.samples[name], rounds=series.rounds, again=series.again.get(name, ()), clock=clock
        )
        for name in REST
        if name in series.samples
    }
    by_profiler, same = _by_group(one, profiled)
    groups = _groups(one, series, by_profiler, context, clock) if one.groups.parts else ()
    if groups:
        values |= _rest(values, groups)
    values["error"] = context.counted(one.error)
    if profiled is not None:
        sums = [sum(times) for times in profiled.calls_s]
        values["profiler_s"] = context.measured(sums, clock="cupti")
    notes = list(one.notes)
    if profiled is not None and one.kernels and not same:
        notes.append(
            WorkloadNote(kind="other", text="torch.profiler saw other kernels, so its sums are not split by part")
        )
    return WorkloadMeasurement(
        case=case,
        values=values,
        notes=tuple(notes),
        groups=groups,
        failure=failure_of(one.error, call),
    )


def _rest(values: Mapping[str, WorkloadValue], groups: Sequence[WorkloadGroup]) -> dict[str, WorkloadValue]:
    """The sum as that of the times of the groups, and the rest as the difference of the two times that are shown beside it. Their
    intervals are those of the sums and differences in each round, widened to contain them."""
    layer = values["layer_s"]
    assert isinstance(layer, Measured)
    total = sum(group.time.estimate for group in groups if group.time is not None)
    rest = layer.estimate - total
    collected: dict[str, WorkloadValue] = {}
    for name, estimate in (("groups_s", total), ("rest_s", rest), ("rest_share", rest / layer.estimate)):
        paired = values[name]
        assert isinstance(paired, Measured)
        low = None if paired.low is None else min(paired.low, estimate)
        high = None if paired.high is None else max(paired.high, estimate)
        collected[name] = msgspec.structs.replace(paired, estimate=estimate, low=low, high=high)
    return collected


def _by_group(one: Prepared, profiled: ProfilerAnswer | None) -> tuple[list[float | None], bool]:
    """The median sum of each group by torch.profiler, and whether it saw as many kernels as the layer has, so that they are
    assigned by their order."""
    if profiled is None or sum(map(len, one.kernels)) != len(profiled.names):
        return [None] * len(one.groups.parts), False
    collected: list[float | None] = []
    begin = 0
    for group in one.kernels:
        collected.append(median(sum(times[begin : begin + len(group)]) for times in profiled.calls_s))
        begin += len(group)
    return collected, True


def _groups(
    one: Prepared, series: Any, by_profiler: Sequence[float | None], context: WorkloadContext, clock: Any
) -> tuple[WorkloadGroup, ...]:
    built, begin = [], 0
    for number, parts in enumerate(one.groups.parts):
        kernels = one.kernels[number] if one.kernels else ()
        each = [[times[k] for times in one.kernels_s] for k in range(begin, begin + len(kernels))]
        begin += len(kernels)
        built.append(
            WorkloadGroup(
                parts=parts,
                kernels=tuple(name[:400] for name in kernels),
                time=context.measured(series.samples[f"group_{number}"], rounds=series.rounds, clock=clock),
                kernels_s=tuple(median(times) for times in each),
                profiler_s=by_profiler[number],
            )
        )
    return tuple(built)
