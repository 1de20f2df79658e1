"""From a request to a checked plan."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast, get_args

from kernelviz.bench.summaries import Offer
from kernelviz.core import (
    BadField,
    Clock,
    Device,
    Direction,
    FigureName,
    Method,
    Plan,
    Problem,
    Run,
    RunRequest,
    check_name,
)
from kernelviz.core.sizes import MAX_PROBLEMS, expand, without_unused_offsets
from kernelviz.core.units import size_bytes, typed_size
from kernelviz.ops import Op

LOAD_S = (0.5, 15.0)
"""The shortest and the longest sustained load before a variant, in seconds. A worker that reports nothing for 30 s counts as hung
(worker.limits)."""


def problems(op: Op, device: Device, request: RunRequest) -> tuple[Problem, ...]:
    """The problems of a request, each once. Errors: UnknownName, BadField."""
    check_name("direction", request.direction, get_args(Direction))
    texts = {a.name: a.default if device.kind == "cuda" else a.cpu_default for a in op.axes}
    if request.preset is not None:
        presets = {preset.name: preset.sizes for preset in op.presets}
        check_name("preset", request.preset, presets, of=f"op {op.name!r}")
        texts.update(presets[request.preset])
    texts.update(request.sizes or {})
    every = [
        op.problem(
            sizes,
            request.dtype or op.dtypes[0],
            compute=request.compute,
            direction=cast(Direction, request.direction),
            data=request.data,
        )
        for sizes in without_unused_offsets(expand(op.axis_names, texts))
    ]
    distinct = {p.key: p for p in every}
    if len(distinct) > MAX_PROBLEMS:
        raise BadField("sizes", f"{len(distinct)} problems", f"a plan holds at most {MAX_PROBLEMS}; sweep fewer sizes")
    chosen = tuple(distinct.values())
    unfit = too_large(op, device, chosen)
    if len(unfit) == len(chosen):
        smallest = min(unfit, key=lambda one: one.needed_bytes)
        raise BadField(
            "sizes",
            " ".join(f"{axis}={typed_size(size)}" for axis, size in smallest.problem.sizes.items()),
            f"measuring {op.name} {smallest.problem.dtype} takes {size_bytes(smallest.needed_bytes)} of memory (inputs, outputs "
            f"and the float64 reference), and {device.name} has {size_bytes(smallest.memory_bytes)}; choose smaller sizes",
        )
    return chosen


@dataclass(frozen=True, slots=True)
class TooLarge:
    """A problem that needs more memory than its device has."""

    problem: Problem
    needed_bytes: int
    memory_bytes: int


def too_large(op: Op, device: Device, problems: Sequence[Problem]) -> tuple[TooLarge, ...]:
    """The problems that cannot fit, even if all of the device's memory is free. None if its memory is unknown.

    Less may be free, so a worker checks it again before it allocates anything.
    """
    memory_bytes = device.memory_bytes
    if memory_bytes is None:
        return ()
    needed = ((problem, op.needed_bytes(problem)) for problem in problems)
    return tuple(TooLarge(problem, size, memory_bytes) for problem, size in needed if size > memory_bytes)


def chosen_variants(
    op: Op, offers: tuple[Offer, ...], problems: Sequence[Problem], names: tuple[str, ...] | None, baseline: str | None
) -> tuple[tuple[str, ...], str]:
    """The variants of a request, and the baseline, which is one of them. Raises UnknownName, BadField.

    None selects every variant that can run here and can solve at least one of the problems, except those that run only when
    they are named. A baseline that is named is measured, too.
    """
    if names is None:
        offers = tuple(o for o in offers if not o.variant.only_when_named)
        able = [o.variant.name for o in offers if o.available and any(o.variant.refuses(p) is None for p in problems)]
        names = tuple(able) or tuple(o.variant.name for o in offers)
    if not names:
        raise BadField("variants", "", f"name at least one of {', '.join(v.name for v in op.variants)}")
    names = tuple(op.variant_named(name).name for name in names)  # so that a configuration has one name only
    if baseline is not None:
        baseline = op.variant_named(baseline).name
        names = names if baseline in names else (baseline, *names)
    elif op.baseline in names:
        baseline = op.baseline
    return tuple(dict.fromkeys(names)), baseline or names[0]


def plugin_paths(paths: tuple[str, ...]) -> tuple[str, ...]:
    """Absolute paths, because the worker has another current folder. Raises BadField for a file that does not exist."""
    absolute = []
    for given in paths:
        path = Path(given).expanduser().resolve()
        if not path.is_file():
            raise BadField("plug-in", given, "there is no such file")
        absolute.append(str(path))
    return tuple(dict.fromkeys(absolute))


def checked_method(method: Method) -> Method:
    """The method, if it can be carried out. Raises BadField, UnknownName."""
    check_name("clock", str(method.clock), get_args(Clock))
    for name, least, most in (("budget_s", 0.001, 3600.0), ("half_width", 1e-6, 1.0), ("ratio_half_width", 1e-6, 1.0)):
        value = getattr(method, name)
        if not (math.isfinite(value) and least <= value <= most):
            raise BadField(name, value, f"give a number from {least:g} to {most:g}")
    if isinstance(method.load_s, float):
        least, most = LOAD_S
        if method.clock != "sustained":
            raise BadField(
                "load_s", f"{method.load_s:g}", "a burst has no steady load: choose clock sustained, or leave it out"
            )
        if not (math.isfinite(method.load_s) and least <= method.load_s <= most):
            raise BadField("load_s", f"{method.load_s:g}", f"give a number of seconds from {least:g} to {most:g}")
    factor = method.stop_factor
    if factor is not None and not (math.isfinite(factor) and 1.1 <= factor <= 1000):
        raise BadField("early_stop", factor, "give a factor from 1.1 to 1000, or leave it out")
    for name in method.figures:
        check_name("figure", name, get_args(FigureName))
    if "cold" not in method.figures:
        raise BadField("figures", ", ".join(method.figures), "device cold is always measured: add cold")
    if method.untrusted and method.figures != ("cold",):
        raise BadField(
            "untrusted",
            "yes",
            f"a judge can check only the cold device time; leave out {', '.join(method.figures[1:])}",
        )
    if not 1 <= method.seeds <= 100:
        raise BadField("seeds", method.seeds, "give a whole number from 1 to 100")
    return method


def check_device(run: Run, device: Device) -> None:
    """Check that a run is to be continued on the device that it was measured on. Raises BadField."""
    measured_on = run.environment.device
    if device.uuid != measured_on.uuid:
        raise BadField(
            "run",
            run.id,
            f"it was measured on {measured_on.name} ({measured_on.uuid}), {device.id} is "
            f"{device.name} here; start a new run of the same plan",
        )


def check_axes(plan: Plan, op: Op) -> None:
    """Check the axes of a plan, which may come from an earlier version or another machine. Raises BadField."""
    for problem in plan.problems:
        if not op.has_axes_of(problem.sizes):
            known, given = ", ".join(op.axis_names), ", ".join(problem.sizes)
            raise BadField(
                "sizes",
                given,
                f"op {op.name!r} has the axes {known} here; start a new run with a size for each of them",
            )


def title_of(plan: Plan, device: Device, method: Method) -> str:
    """The title of a run, unless somebody gives it another one. It names the load, because burst and sustained times differ.

    >>> from kernelviz.core.problem import Problem
    >>> cpu = Device(id="cpu", kind="cpu", name="EPYC", uuid="u")
    >>> made = tuple(Problem(op="add", sizes={"n": n}, dtype="fp32") for n in (4, 8))
    >>> plan = Plan(problems=made, variants=("a",), baseline="a", device="cpu")
    >>> title_of(plan, cpu, Method()), title_of(plan, cpu, Method(clock="sustained"))
    ('add fp32, 2 sizes, EPYC', 'add fp32 sustained, 2 sizes, EPYC')
    >>> from msgspec.structs import replace
    >>> heads = tuple(Problem(op="attention", sizes={"s": s, "hq": 32, "hk": 8}, dtype="bf16") for s in (4, 8))
    >>> title_of(replace(plan, problems=heads), cpu, Method())
    'attention bf16, 2 sizes, hq=32 hk=8, EPYC'
    """
    first = plan.problems[0]
    shared = {a: size for a, size in first.sizes.items() if all(p.sizes.get(a) == size for p in plan.problems)}
    named = " ".join(f"{axis}={size}" for axis, size in shared.items())
    sizes = named if len(plan.problems) == 1 else ", ".join(filter(None, (f"{len(plan.problems)} sizes", named)))
    backward = ["backward"] if first.direction == "backward" else []
    data = [] if first.data in (None, "normal") else [f"{first.data} data".replace("_", " ")]
    load = [method.clock] if method.clock == "sustained" else []
    what = " ".join((plan.op, first.precision, *backward, *data, *load))
    if plan.search is None:
        return f"{what}, {sizes}, {device.name}"
    selection = "" if plan.search.seed is None else f" of {plan.search.admitted} (seed {plan.search.seed})"
    return (
        f"tuning {plan.search.variant}, {len(plan.variants)}{selection} configurations: {what}, {sizes}, {device.name}"
    )
