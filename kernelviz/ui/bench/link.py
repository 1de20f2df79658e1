"""A page's address and its plan: read before any widget exists, written back in full, defaults included.

A value that cannot be used is named with the nearest one that can, and only that field falls back; nothing else is lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import cast

from kernelviz.bench import Bench
from kernelviz.core.configuration import base_name, split_names
from kernelviz.core.errors import UnknownName, UsageError, nearest
from kernelviz.core.problem import Clock, Direction
from kernelviz.core.sizes import expand
from kernelviz.ops import Op
from kernelviz.ui.bench.form import (
    BUDGET_S,
    CLOCKS,
    DATA,
    Form,
    choices,
    data_kinds,
    default_baseline,
    default_direction,
    default_form,
    default_sizes,
    default_variants,
    sizes_from,
)

VIEW = ("show", "against", "at", "l2", "samples", "samples_of", "inspect", "values", "tab", "hide", "with")
"""Filters of the view, bound by their widgets; they are no part of the plan."""
_PLAN = (
    "op", "variants", "dtype", "compute", "direction", "preset", "budget", "clock", "energy", "device", "data", "baseline", "run",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Complaint:
    """A field of the link that could not be used: what is wrong with it and what is used instead."""

    field: str
    message: str


@dataclass(frozen=True, slots=True)
class Link:
    """What an address asks for."""

    form: Form
    run_id: str | None
    complaints: tuple[Complaint, ...]


class _Reader:
    """Takes one parameter after the other and collects what is wrong."""

    def __init__(self, params: Mapping[str, str], bench: Bench) -> None:
        self.params, self.bench = params, bench
        self.complaints: list[Complaint] = []

    def complain(self, field: str, wrong: str, instead: str) -> None:
        self.complaints.append(Complaint(field, f"{wrong.rstrip('. ')}. Using {instead} instead."))

    def one_of(self, field: str, what: str, known: tuple[str, ...], default: str, of: str = "") -> str:
        text = self.params.get(field, "").strip()
        if not text or text in known:
            return text or default
        used = nearest(text, known) or default
        self.complain(field, str(UnknownName(what, text, known, of=of)), used)
        return used


def read(params: Mapping[str, str], bench: Bench) -> Link:
    """The form that the parameters describe, everything unsaid by default, with a complaint for each bad field."""
    reader = _Reader(params, bench)
    start = default_form(bench)
    op_name = reader.one_of("op", "op", tuple(bench.ops()), start.op)
    device = reader.one_of("device", "device", tuple(d.id for d in bench.devices()), start.device)
    op = bench.ops()[op_name]
    form = default_form(bench, op_name, device)
    form = _with_dtype(form, reader, op)
    form = _with_direction(form, reader, op)
    form = _with_variants(form, reader, op)
    form = _with_sizes(form, reader, op)
    form = replace(
        form,
        budget_s=_budget(reader, form.budget_s),
        clock=cast(Clock, reader.one_of("clock", "clock", CLOCKS, form.clock)),
        energy=reader.one_of("energy", "energy", ("yes", "no"), "yes" if form.energy else "no") == "yes",
        data=_data(reader, op, form.data),
        baseline=reader.one_of("baseline", "baseline", form.variants, form.baseline, of="the chosen variants"),
    )
    known = (*_PLAN, *VIEW, *op.axis_names)
    for name in params:
        if name not in known:
            hint = nearest(name, known)
            said = f"'{name}' is no field of this page" + (f"; did you mean '{hint}'?" if hint else "")
            reader.complaints.append(
                Complaint(name, f"{said} It was left out." if hint else f"{said}. It was left out.")
            )
    return Link(form, params.get("run") or None, tuple(reader.complaints))


def _with_dtype(form: Form, reader: _Reader, op: Op) -> Form:
    dtype = reader.one_of("dtype", "dtype", op.dtypes, form.dtype, of=f"op {op.name!r}")
    computes = op.computes.get(dtype, ())
    if not computes:
        if reader.params.get("compute"):
            said = f"op {op.name!r} in {dtype} has no choice of compute precision"
            reader.complaints.append(Complaint("compute", f"{said}. It was left out."))
        return replace(form, dtype=dtype, compute=None)
    compute = reader.one_of("compute", "compute precision", computes, computes[0], of=f"op {op.name!r} in {dtype}")
    return replace(form, dtype=dtype, compute=compute)


def _with_direction(form: Form, reader: _Reader, op: Op) -> Form:
    default = default_direction(op)
    asked = reader.params.get("direction", "").strip()
    if default is None:
        if asked not in ("", *op.directions):
            said = str(UnknownName("direction", asked, op.directions, of=f"op {op.name!r}")).rstrip(". ")
            reader.complaints.append(Complaint("direction", f"{said}. It was left out."))
        return form
    used = reader.one_of("direction", "direction", op.directions, default, of=f"op {op.name!r}")
    return replace(form, direction=cast(Direction, used))


def _with_variants(form: Form, reader: _Reader, op: Op) -> Form:
    offered = choices(reader.bench, op, form.device, form.dtype, form.compute, form.direction)
    default = default_variants(offered, op)
    if "variants" not in reader.params:
        return replace(form, variants=default, baseline=default_baseline(op, default))
    reasons = {c.variant.name: c.reason for c in offered}
    kept: list[str] = []
    for asked in split_names(reader.params["variants"]):
        name = base_name(asked)
        if name != asked and name in reasons:
            said = f"this page measures {name!r} as it was tuned, or with its default configuration"
            reader.complain("variants", f"{asked!r}: {said}", name)
        if name not in reasons:
            wrong = str(UnknownName("variant", name, reasons, of=f"op {op.name!r}"))
            used = nearest(name, [n for n, reason in reasons.items() if not reason])
            if used is None:
                reader.complaints.append(Complaint("variants", f"{wrong}. It was left out."))
                continue
            reader.complain("variants", wrong, used)
            name = used
        elif reasons[name]:
            said = f"variant '{name}': {reasons[name].rstrip('. ')}"
            reader.complaints.append(Complaint("variants", f"{said}. It was left out."))
            continue
        kept.append(name)
    if not kept:
        reader.complain("variants", "no usable variant is left", ", ".join(default) or "none")
    variants = tuple(n for n in reasons if n in kept) or default
    return replace(form, variants=variants, baseline=default_baseline(op, variants))


def _with_sizes(form: Form, reader: _Reader, op: Op) -> Form:
    presets = {p.name: p for p in op.presets}
    given = {a: reader.params[a] for a in op.axis_names if reader.params.get(a, "").strip()}
    name: str | None = None
    if reader.params.get("preset"):
        asked = reader.params["preset"]
        name = asked if asked in presets else nearest(asked, presets)
        if asked not in presets:
            wrong = str(UnknownName("preset", asked, presets, of=f"op {op.name!r}"))
            reader.complain("preset", wrong, name or "the default sizes")
        if name is not None and not given:
            sizes = {a: presets[name].sizes[a] for a in op.axis_names}
            return replace(form, sizes_from="preset", preset=name, sizes=sizes)
    # As `bench.plan` has it: sizes that are given lie over those of the preset.
    start = {a: presets[name].sizes[a] for a in op.axis_names} if name is not None else None
    start = start or default_sizes(reader.bench, op, form.device)
    sizes = dict(start)
    for axis, text in given.items():
        try:
            expand(op.axis_names, {**dict.fromkeys(op.axis_names, "1"), axis: text})
            sizes[axis] = text.strip()
        except UsageError as error:
            reader.complain(axis, str(error), sizes[axis])
    try:
        expand(op.axis_names, sizes)
    except UsageError as error:
        sizes = start
        reader.complain(", ".join(given), str(error), ", ".join(f"{a} = {t}" for a, t in sizes.items()))
    return replace(form, sizes=sizes, sizes_from=sizes_from(sizes), preset=None)


def _data(reader: _Reader, op: Op, default: str) -> str:
    asked, known = reader.params.get("data", "").strip(), data_kinds(op)
    if asked in DATA and asked not in known:
        reader.complain("data", f"data: op {op.name!r} has no input of ids that could be {asked}", default)
        return default
    return reader.one_of("data", "input data", known, default)


def _budget(reader: _Reader, default: float) -> float:
    text = reader.params.get("budget", "").strip()
    if not text:
        return default
    low, high = BUDGET_S
    try:
        value = float(text)
    except ValueError:
        reader.complain("budget", f"budget: '{text}' is not a number of seconds", f"{default:g} s")
        return default
    if not low <= value <= high:  # False for NaN as well.
        used = min(max(value, low), high) if value == value else default
        reader.complain("budget", f"budget: '{text}' s is outside {low:g} to {high:g} s", f"{used:g} s")
        return used
    return value


def write(form: Form, run_id: str | None) -> dict[str, str]:
    """The parameters that reopen the form, all fields written out, and the run beside it when there is one."""
    params = {"op": form.op, "variants": ",".join(form.variants), "dtype": form.dtype}
    if form.compute is not None:
        params["compute"] = form.compute
    if form.direction is not None:
        params["direction"] = form.direction
    if form.sizes_from == "preset" and form.preset is not None:
        params["preset"] = form.preset
    else:
        params |= form.sizes
    params |= {
        "budget": f"{form.budget_s:g}",
        "clock": form.clock,
        "energy": "yes" if form.energy else "no",
        "data": form.data,
        "baseline": form.baseline,
        "device": form.device,
    }
    if run_id is not None:
        params["run"] = run_id
    return params
