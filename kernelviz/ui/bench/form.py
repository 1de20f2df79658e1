"""The form of the page Bench as a value: text and names, always complete, checked against what this machine offers."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal, get_args

import msgspec

from kernelviz.bench import Bench
from kernelviz.core import (
    USUAL_FIGURES,
    Clock,
    Data,
    Direction,
    FigureName,
    Method,
    Plan,
    Problem,
    Run,
    RunRequest,
    UsageError,
)
from kernelviz.core.configuration import base_name
from kernelviz.core.problem import STEADY_S
from kernelviz.core.reasons import Refusal
from kernelviz.core.sizes import expand, is_list, least_size, written
from kernelviz.ops import Op, Variant
from kernelviz.text import describe_reason

SizesFrom = Literal["values", "preset", "sweep"]
DATA: tuple[str, ...] = get_args(Data)
CLOCKS: tuple[Clock, ...] = get_args(Clock)
BUDGET_S = (0.05, 60.0)
FIRST = "rmsnorm"
"""The op that a first visit shows: memory-bound, available on every CPU, and fusion makes it visibly faster."""
MOST_VISIBLE = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class Form:
    """A plan as text. `sizes` has every axis, also with a preset. `direction`: None if the op has only one."""

    device: str
    op: str
    variants: tuple[str, ...]
    dtype: str
    compute: str | None
    direction: Direction | None
    sizes_from: SizesFrom
    preset: str | None
    sizes: Mapping[str, str]
    budget_s: float
    clock: Clock
    load_s: float
    energy: bool
    naive: bool
    untrusted: bool
    compile_ahead: bool
    data: str
    baseline: str

    def plan(self, bench: Bench) -> Plan:
        """The checked plan. Errors: UsageError, with the field and the nearest valid value."""
        return bench.plan(
            RunRequest(
                op=self.op,
                sizes=dict(self.sizes),
                variants=self.variants,
                dtype=self.dtype,
                compute=self.compute,
                direction=self.direction or "forward",
                data=self.data,
                baseline=self.baseline,
                device=self.device,
            )
        )

    @property
    def method(self) -> Method:
        chosen: tuple[tuple[FigureName, bool], ...] = (("energy", self.energy), ("naive", self.naive))
        figures = (*USUAL_FIGURES, *(name for name, wanted in chosen if wanted))
        return Method(
            budget_s=self.budget_s,
            clock=self.clock,
            load_s=self.load_s if self.clock == "sustained" else msgspec.UNSET,
            judge=True if self.untrusted else msgspec.UNSET,
            figures=("cold",) if self.untrusted else figures,
            ahead=self.compile_ahead,
        )


@dataclass(frozen=True, slots=True)
class Choice:
    """A variant on the form, and why it cannot be chosen (empty: it can)."""

    variant: Variant
    refusal: Refusal | None

    @property
    def usable(self) -> bool:
        return self.refusal is None

    @property
    def reason(self) -> str:
        """Why it cannot be picked; empty where it can."""
        return "" if self.refusal is None else str(describe_reason(self.refusal))


def choices(
    bench: Bench, op: Op, device_id: str, dtype: str, compute: str | None, direction: Direction | None = None
) -> tuple[Choice, ...]:
    """Every variant in the order of the op; a variant that cannot run on this machine or for this problem has the reason."""
    sizes = {axis: least_size(axis) for axis in op.axis_names}
    sample = Problem(op=op.name, sizes=sizes, dtype=dtype, compute=compute, direction=direction or "forward")
    return tuple(Choice(o.variant, o.variant.refuses(sample) or o.lack) for o in bench.offers(op.name, device_id))


def data_kinds(op: Op) -> tuple[str, ...]:
    """The kinds of input data that the op accepts; only ids can be sorted."""
    return tuple(kind for kind in DATA if kind != "sorted" or any(t.below for t in op.inputs))


def default_sizes(bench: Bench, op: Op, device_id: str) -> dict[str, str]:
    """The default sweep of the op on that device."""
    on_cpu = bench.device(device_id).kind == "cpu"
    return {a.name: a.cpu_default if on_cpu else a.default for a in op.axes}


def default_form(
    bench: Bench, op_name: str | None = None, device_id: str | None = None, direction: Direction | None = None
) -> Form:
    """The default form for an op and a device; `direction` counts where the op has several."""
    op = bench.ops()[op_name or (FIRST if FIRST in bench.ops() else next(iter(bench.ops())))]
    device = device_id or bench.default_device()
    dtype = op.dtypes[0]
    compute = next(iter(op.computes.get(dtype, ())), None)
    first = default_direction(op)
    direction = None if first is None else direction or first
    variants = default_variants(choices(bench, op, device, dtype, compute, direction), op)
    sizes = default_sizes(bench, op, device)
    return Form(
        device=device,
        op=op.name,
        variants=variants,
        dtype=dtype,
        compute=compute,
        direction=direction,
        sizes_from=sizes_from(sizes),
        preset=None,
        sizes=sizes,
        budget_s=Method().budget_s,
        clock="burst",
        load_s=STEADY_S,
        energy=False,
        naive=False,
        untrusted=False,
        compile_ahead=True,
        data="normal",
        baseline=default_baseline(op, variants),
    )


def default_direction(op: Op) -> Direction | None:
    """The first of several directions, None if the op has only one."""
    return op.directions[0] if len(op.directions) > 1 else None


def default_variants(offered: Sequence[Choice], op: Op) -> tuple[str, ...]:
    """The op's default variants, as far as they can run here; else the first that can. Never one that runs only when named."""
    usable = [c.variant.name for c in offered if c.usable and not c.variant.only_when_named]
    return tuple(n for n in usable if n in op.first) or tuple(usable[:MOST_VISIBLE])


def default_baseline(op: Op, variants: Sequence[str]) -> str:
    return op.baseline if op.baseline in variants or not variants else variants[0]


def reconciled(form: Form, before: Form, bench: Bench) -> Form:
    """`form` after one widget changed from `before`: values that are no longer valid become defaults, the rest stays."""
    op = bench.ops()[form.op]
    if form.op != before.op:
        form = replace(
            default_form(bench, form.op, form.device),
            dtype=form.dtype if form.dtype in op.dtypes else op.dtypes[0],
            budget_s=form.budget_s,
            clock=form.clock,
            load_s=form.load_s,
            energy=form.energy,
            naive=form.naive,
            untrusted=form.untrusted,
            compile_ahead=form.compile_ahead,
            data=form.data if form.data in data_kinds(op) else "normal",
        )
    elif form.device != before.device and dict(form.sizes) == default_sizes(bench, op, before.device):
        form = replace(form, sizes=default_sizes(bench, op, form.device))
    computes = op.computes.get(form.dtype) or (None,)
    directions = op.directions if len(op.directions) > 1 else (None,)
    form = replace(
        _with_sizes(form, before, op, bench),
        compute=form.compute if form.compute in computes else computes[0],
        direction=form.direction if form.direction in directions else directions[0],
    )
    offered = choices(bench, op, form.device, form.dtype, form.compute, form.direction)
    usable = {c.variant.name for c in offered if c.usable}
    variants = tuple(v for v in form.variants if v in usable)
    if not variants and form.variants:
        variants = default_variants(offered, op)
    baseline = form.baseline if form.baseline in variants else default_baseline(op, variants)
    return replace(form, variants=variants, baseline=baseline)


def _with_sizes(form: Form, before: Form, op: Op, bench: Bench) -> Form:
    presets = {p.name: p for p in op.presets}
    if form.sizes_from == "preset" and presets:
        chosen = presets.get(form.preset or "", op.presets[0])
        return replace(form, preset=chosen.name, sizes={a: chosen.sizes[a] for a in op.axis_names})
    if form.sizes_from == before.sizes_from or form.op != before.op:
        mode: SizesFrom = "sweep" if form.sizes_from == "preset" else form.sizes_from
        return replace(form, preset=None, sizes_from=mode)
    if form.sizes_from == "sweep":
        return replace(form, preset=None, sizes=default_sizes(bench, op, form.device))
    with suppress(UsageError):  # An invalid sweep stays as it is.
        last = expand(op.axis_names, before.sizes)[-1]
        return replace(form, preset=None, sizes={a: str(last[a]) for a in op.axis_names})
    return replace(form, preset=None, sizes=dict(before.sizes))


def sizes_from(sizes: Mapping[str, str]) -> SizesFrom:
    """`values` if every axis is a list of numbers, else `sweep`.

    >>> sizes_from({"n": "64, 4k"}), sizes_from({"n": "2^10..2^12"})
    ('values', 'sweep')
    """
    return "values" if all(map(is_list, sizes.values())) else "sweep"


def form_of(run: Run, bench: Bench) -> Form | None:
    """The form that measures a stored run again; None if this installation does not have its op.

    A device that is not on this machine becomes the default one; unknown variants are left out.
    """
    op = bench.ops().get(run.plan.op)
    if op is None or not run.plan.problems:
        return None
    device = run.plan.device if run.plan.device in {d.id for d in bench.devices()} else bench.default_device()
    first = run.plan.problems[0]
    texts = written(op.axis_names, [p.sizes for p in run.plan.problems]) or default_sizes(bench, op, device)
    form = Form(
        device=device,
        op=op.name,
        variants=tuple(dict.fromkeys(base_name(name) for name in run.plan.variants)),
        dtype=first.dtype if first.dtype in op.dtypes else op.dtypes[0],
        compute=first.compute,
        direction=first.direction if len(op.directions) > 1 else None,
        sizes_from=sizes_from(texts),
        preset=None,
        sizes=texts,
        budget_s=run.method.budget_s,
        clock=run.method.clock or "burst",
        load_s=run.method.steady_s or STEADY_S,
        energy="energy" in run.method.figures,
        naive="naive" in run.method.figures,
        untrusted=run.method.untrusted,
        compile_ahead=run.method.ahead is not False,
        data=first.data if first.data in data_kinds(op) else "normal",
        baseline=base_name(run.plan.baseline),
    )
    return reconciled(form, form, bench)
