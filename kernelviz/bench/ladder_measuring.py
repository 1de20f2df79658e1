"""Use case: measure the ladder of an op, or one step of it, on a device."""

from collections.abc import Mapping, Sequence

import msgspec

from kernelviz.bench.bench import Bench
from kernelviz.bench.ladder import op_with_ladder
from kernelviz.bench.ladder_published import declared
from kernelviz.core import BadField, Device, Method, Plan, Problem, RunRequest, check_name
from kernelviz.core.reasons import Refusal
from kernelviz.core.sizes import expand
from kernelviz.metrics.ladder import DeclaredVariant, steps_by_backend
from kernelviz.metrics.library_comparison import OWN
from kernelviz.ops import Op
from kernelviz.text import describe_reason, format_problem

BUDGET_S = 0.3
"""Largest device time for each case of a measurement that the page starts, in seconds."""


def runnable(bench: Bench, op: Op, problems: Sequence[Problem], device_id: str) -> tuple[str, ...]:
    """The steps and libraries that can run on a device and solve one of the problems, in the order of the catalogue."""
    kinds = {v.name: v for v in (ladder_variants(op, problems[0]) if problems else ())}
    return tuple(
        offer.variant.name
        for offer in bench.offers(op.name, device_id)
        if offer.available
        and offer.variant.name in kinds
        and any(offer.variant.refuses(problem) is None for problem in problems)
    )


def ladder_variants(op: Op, problem: Problem) -> tuple[DeclaredVariant, ...]:
    """The steps of all ladders of an op, and its libraries, without those that are measured only when somebody names them."""
    every = declared(op, problem)
    steps = steps_by_backend([v for v in every if v.backend in OWN])
    own = {v.name for of in steps.values() for v in of}
    return tuple(v for v in every if v.name in own or (v.backend not in OWN and not v.only_when_named))


def plan_of(
    bench: Bench,
    op: str,
    device_id: str | None = None,
    *,
    sizes: Mapping[str, str] | None = None,
    dtype: str | None = None,
    compute: str | None = None,
    direction: str = "forward",
    data: str = "normal",
    backend: str | None = None,
    variant: str | None = None,
    over: str | None = None,
) -> Plan:
    """The plan that measures the ladder of an op on a device: its steps of all backends or of one, and the libraries. `variant`:
    only this step, the step `over` (by default the one before it that can run there), and the baseline.

    Errors: UnknownName for the names; BadField for sizes, and if no step can run there, with the reason.
    """
    known = op_with_ladder(bench, op)
    device = bench.device(device_id or bench.default_device())
    request = RunRequest(
        op=op,
        sizes=dict(sizes) if sizes is not None else default_sizes(known, device),
        dtype=dtype,
        compute=compute,
        direction=direction,
        data=data,
        device=device.id,
    )
    problems = bench.plan(msgspec.structs.replace(request, variants=(known.baseline,))).problems
    names = runnable(bench, known, problems, device.id)
    own = {v.name: v.backend for v in known.variants if v.backend in OWN}
    if backend is not None:
        check_name("backend", backend, dict.fromkeys(own.values()))
    if variant is not None:
        check_name("variant", variant, own, of=f"op {op!r}")
        backend = own[variant]
    steps = [name for name in names if name in own and backend in (None, own[name])]
    if variant is not None and variant not in steps:
        raise BadField("variant", variant, _why_not(bench, known, variant, problems, device))
    if not steps:
        first = next(name for name in own if backend in (None, own[name]))
        raise BadField("op", op, f"no rung of it can run there: {_why_not(bench, known, first, problems, device)}")
    if variant is not None:
        place = steps.index(variant)
        before = [over] if over in steps else steps[max(0, place - 1) : place]
        chosen = {*before, variant, known.baseline}
    else:
        chosen = {*steps, *(name for name in names if name not in own)}
    order = tuple(v.name for v in known.variants if v.name in chosen)
    return bench.plan(msgspec.structs.replace(request, variants=order))


def _why_not(bench: Bench, op: Op, variant: str, problems: Sequence[Problem], device: Device) -> str:
    """Why a step cannot be measured on a device."""
    offer = next(o for o in bench.offers(op.name, device.id) if o.variant.name == variant)
    refusal: Refusal | None = offer.lack
    for problem in problems:
        refusal = refusal or offer.variant.refuses(problem)
    reason = f"{describe_reason(refusal)}" if refusal is not None else "it is no rung of the ladder at this size"
    return f"{variant} on {device.name}: {reason}"


def default_sizes(op: Op, device: Device) -> dict[str, str]:
    """The largest of the sizes that the op is measured at by default on a device."""
    texts = {axis.name: axis.default if device.kind == "cuda" else axis.cpu_default for axis in op.axes}
    return {axis: str(size) for axis, size in expand(op.axis_names, texts)[-1].items()}


def start(
    bench: Bench,
    plan: Plan,
    *,
    budget_s: float = BUDGET_S,
    owner: str = "",
) -> str:
    """Measure a plan of `plan_of`, cold device times only, and return the id of the run at once. Errors: BadField, StoreError."""
    device, problem = bench.device(plan.device), plan.problems[0]
    title = f"ladder of {format_problem(problem)}, {device.name}" if len(plan.problems) == 1 else ""
    return bench.run(plan, Method(budget_s=budget_s), owner=owner, title=title)


def start_problem(
    bench: Bench,
    problem: Problem,
    device_id: str | None = None,
    *,
    backend: str | None = None,
    variant: str | None = None,
    over: str | None = None,
    budget_s: float = BUDGET_S,
    owner: str = "",
) -> str:
    """Measure the ladder at one problem, or one step of it, and return the id of the run. Errors: as `plan_of`."""
    return start(
        bench,
        plan_of_problem(bench, problem, device_id, backend=backend, variant=variant, over=over),
        budget_s=budget_s,
        owner=owner,
    )


def plan_of_problem(
    bench: Bench,
    problem: Problem,
    device_id: str | None = None,
    *,
    backend: str | None = None,
    variant: str | None = None,
    over: str | None = None,
) -> Plan:
    """`plan_of` at one problem. Errors: as `plan_of`."""
    return plan_of(
        bench,
        problem.op,
        device_id,
        sizes={axis: str(size) for axis, size in problem.sizes.items()},
        dtype=problem.dtype,
        compute=problem.compute,
        direction=problem.direction or "forward",
        data=problem.data or "normal",
        backend=backend,
        variant=variant,
        over=over,
    )
