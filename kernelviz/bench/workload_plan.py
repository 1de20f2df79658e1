"""From what a person asks of a workload to a checked plan: devices, values of the axes, variants, and what is missing here."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kernelviz.core import BadField, Device, UnknownName, check_name, sizes
from kernelviz.core.mechanics_only import is_mechanics_only
from kernelviz.core.reasons import NeedMissing
from kernelviz.core.workload import (
    AxisValue,
    Workload,
    WorkloadAxis,
    WorkloadCase,
    WorkloadLimit,
    WorkloadMethod,
    WorkloadPlan,
    WorkloadPreset,
    WorkloadVariant,
)
from kernelviz.hardware.discovery import missing
from kernelviz.text.workloads import format_axis_value

MOST_CASES = 512
"""The largest number of cases of a plan. Many cases take a process each, for seconds."""
LEAST_BUDGET_S, MOST_BUDGET_S = 0.01, 600.0


@dataclass(frozen=True, slots=True)
class WorkloadRequest:
    """What a person asks, before it is checked. What is None or missing is as the workload declares it.

    `values`: by axis, as people write them (``2^10..2^20``, ``fp32,bf16``). `preset`: the values of the other axes. `devices`:
    ids; of a workload of two ranks two GPUs, or ``cpu``.
    """

    workload: str
    variants: tuple[str, ...] | None = None
    values: Mapping[str, str] = field(default_factory=dict)
    preset: str | None = None
    devices: tuple[str, ...] | None = None
    baseline: str | None = None
    budget_s: float | None = None
    seed: int = 0
    plugins: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WorkloadOffer:
    """A variant, and what it lacks on the chosen devices; None if it can run there."""

    variant: WorkloadVariant
    lack: NeedMissing | None


def offers(workload: Workload, device: Device) -> tuple[WorkloadOffer, ...]:
    """The variants in their order, each with what it lacks on that device."""
    collected = []
    for variant in workload.variants:
        notice = missing(variant.needs, device)
        collected.append(WorkloadOffer(variant, None if notice is None else NeedMissing(notice=notice)))
    return tuple(collected)


def limits(workload: Workload, device: Device) -> tuple[WorkloadLimit, ...]:
    """What the workload cannot say on such a device."""
    return tuple(limit for limit in workload.limits if limit.when in ("always", device.kind))


def mechanics_only(workload: Workload, device: Device) -> bool:
    """Whether times on this device say nothing about GPUs."""
    return is_mechanics_only(workload.on_cpu, device.kind)


def refusal(workload: Workload, devices: Sequence[Device]) -> str | None:
    """Why the workload cannot run on any choice of these devices, with the remedy; None if it can on one."""
    try:
        chosen_devices(workload, devices, None)
    except BadField as error:
        return error.remedy
    return None


def device_choices(workload: Workload, devices: Sequence[Device]) -> tuple[tuple[Device, ...], ...]:
    """The devices or pairs of devices on which the workload can run, the preferred one first."""
    usable = [d for d in devices if d.usable]
    gpus = [d for d in usable if d.kind == "cuda"]
    of_gpus = [tuple(sorted(group, key=lambda d: d.uuid)) for group in itertools.combinations(gpus, workload.ranks)]
    here = workload.on_cpu != "not_here"
    return (*of_gpus, *((d,) for d in usable if d.kind == "cpu" and here))


def chosen_devices(workload: Workload, devices: Sequence[Device], wanted: Sequence[str] | None) -> tuple[Device, ...]:
    """The devices of a plan, in the order of their UUIDs. Errors: UnknownName; BadField with the remedy."""
    by_id = {d.id: d for d in devices}
    choices = device_choices(workload, devices)
    if wanted is None:
        if not choices:
            raise BadField("device", "none", _what_it_takes(workload))
        return choices[0]
    if len(set(wanted)) < len(wanted):
        raise BadField("device", ", ".join(wanted), "a device is named twice")
    for name in wanted:
        if name not in by_id:
            raise UnknownName("device", name, by_id)
        if not by_id[name].usable:
            raise BadField("device", name, by_id[name].reason)
    for choice in choices:
        if {d.id for d in choice} == set(wanted):
            return choice
    raise BadField("device", ", ".join(wanted), _what_it_takes(workload))


def _what_it_takes(workload: Workload) -> str:
    gpus = "two GPUs of this machine, for example cuda:0,cuda:1" if workload.ranks > 1 else "one GPU"
    on_cpu = {"measured": " or cpu", "mechanics_only": " or cpu (mechanics only)", "not_here": ""}[workload.on_cpu]
    return f"{workload.name} takes {gpus}{on_cpu}"


def preset_of(workload: Workload, device: Device, name: str | None) -> WorkloadPreset:
    """The preset of that name, else the first for the kind of device. Errors: UnknownName."""
    by_name = {preset.name: preset for preset in workload.presets}
    if name is not None:
        check_name("preset", name, by_name, of=f"workload {workload.name!r}")
        return by_name[name]
    fitting = [p for p in workload.presets if device.kind in p.device_kinds]
    return (fitting or list(workload.presets))[0]


def values_of(axis: WorkloadAxis, text: str) -> tuple[AxisValue, ...]:
    """The values of an axis as a person writes them. Errors: BadField with the axis and the remedy.

    >>> values_of(WorkloadAxis(name="workers", title="Workers", minimum=0), "0, 2^1..2^3")
    (0, 2, 4, 8)
    """
    parts = [part.strip() for part in text.split(",")]
    if axis.kind == "choice":
        for part in parts:
            if part not in axis.choices:
                raise BadField(axis.name, part, f"choose one of {', '.join(axis.choices)}")
        return tuple(dict.fromkeys(parts))
    collected: list[AxisValue] = []
    for part in parts:
        plain = sizes.without_suffixes(part)
        collected += [int(plain)] if plain.isdecimal() else sizes.values(axis.name, part)
    for value in collected:
        if isinstance(value, int) and (value < axis.minimum or (axis.maximum is not None and value > axis.maximum)):
            most = "" if axis.maximum is None else f", at most {axis.maximum}"
            raise BadField(axis.name, value, f"it is at least {axis.minimum}{most}")
    return tuple(dict.fromkeys(collected))


def plan_of(workload: Workload, request: WorkloadRequest, devices: Sequence[Device]) -> WorkloadPlan:
    """The checked plan. Errors: UnknownName and BadField, which name the field and the remedy."""
    chosen = chosen_devices(workload, devices, request.devices)
    preset = preset_of(workload, chosen[0], request.preset)
    for name in request.values:
        check_name("axis", name, [axis.name for axis in workload.axes], of=f"workload {workload.name!r}")
    by_axis = {
        axis.name: values_of(axis, request.values[axis.name])
        if axis.name in request.values
        else tuple(preset.values[axis.name])
        for axis in workload.axes
    }
    baseline = request.baseline or workload.baseline
    variants = _variants(workload, request.variants, baseline, chosen[0])
    points = [dict(zip(by_axis, values, strict=True)) for values in itertools.product(*by_axis.values())]
    if len(points) * len(variants) > MOST_CASES:
        raise BadField(
            "plan", f"{len(points) * len(variants)} cases", f"at most {MOST_CASES} are measured; choose fewer values"
        )
    cases = tuple(
        WorkloadCase(workload=workload.name, values=values, variant=name) for values in points for name in variants
    )
    return WorkloadPlan(
        workload=workload.name,
        cases=cases,
        baseline=baseline,
        devices=tuple(d.id for d in chosen),
        method=_method(workload, request),
        plugins=request.plugins,
    )


def _variants(workload: Workload, wanted: Sequence[str] | None, baseline: str, device: Device) -> tuple[str, ...]:
    """The variants of a plan in the order of the ladder, the baseline first."""
    known = [variant.name for variant in workload.variants]
    check_name("variant", baseline, known, of=f"workload {workload.name!r}")
    for name in wanted or ():
        check_name("variant", name, known, of=f"workload {workload.name!r}")
    of = {offer.variant.name: offer for offer in offers(workload, device)}
    chosen = wanted or [name for name in known if of[name].variant.by_default and of[name].lack is None]
    if not chosen:
        lack = next((offer.lack for offer in of.values() if offer.lack is not None), None)
        raise BadField(
            "variants", "none", f"no variant can run on {device.name}{'' if lack is None else ': see its needs'}"
        )
    ordered = [name for name in known if name in chosen and name != baseline]
    return (baseline, *ordered)


def _method(workload: Workload, request: WorkloadRequest) -> WorkloadMethod:
    budget_s = workload.budget_s if request.budget_s is None else request.budget_s
    if not LEAST_BUDGET_S <= budget_s <= MOST_BUDGET_S:
        raise BadField("budget", f"{budget_s:g} s", f"give {LEAST_BUDGET_S:g} to {MOST_BUDGET_S:g} seconds")
    return WorkloadMethod(budget_s=budget_s, seed=request.seed)


def title_of(workload: Workload, plan: WorkloadPlan, devices: Sequence[Device]) -> str:
    """The title of a run, unless somebody gives it another one."""
    points = {case.point: case.values for case in plan.cases}
    first = next(iter(points.values()))
    where = " + ".join(device.name for device in devices)
    named = (f"{axis.title.lower()} {format_axis_value(first[axis.name], axis)}" for axis in workload.axes)
    what = ", ".join(named) if len(points) == 1 else f"{len(points)} points"
    return f"{workload.title}, {what}, {where}" if what else f"{workload.title}, {where}"


def lack_of(workload: Workload, case: WorkloadCase, device: Device) -> NeedMissing | None:
    """What a case lacks on a device; None if it can run there."""
    return next(offer.lack for offer in offers(workload, device) if offer.variant.name == case.variant)
