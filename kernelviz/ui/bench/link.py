"""The address of the page Bench: read before any widget exists, and written back in full, including defaults.

An invalid value is reported with the nearest valid one, and only its field falls back to a default.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import isnan
from typing import cast

from kernelviz.bench import Bench
from kernelviz.bench.planning import LOAD_S
from kernelviz.core import Clock, Direction, UnknownName, UsageError
from kernelviz.core.configuration import base_name, split_names
from kernelviz.core.errors import nearest
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

VIEW = (
    "show",
    "against",
    "at",
    "l2",
    "samples",
    "samples_of",
    "counters",
    "inspect",
    "values",
    "code_of",
    "checks_of",
    "tab",
    "hide",
    "with",
)
"""View parameters, which their widgets read and write; they are not part of the plan."""
_PLAN = (
    "op", "variants", "dtype", "compute", "direction", "preset", "budget", "clock", "load", "energy", "naive", "untrusted",
    "compile_ahead", "device", "data", "baseline", "run",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Complaint:
    """An invalid field of the link: what is wrong with it and what is used instead."""

    field: str
    message: str


@dataclass(frozen=True, slots=True)
class Link:
    """The content of an address."""

    form: Form
    run_id: str | None
    complaints: tuple[Complaint, ...]


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads the parameters one by one and collects what is wrong."""

    params: Mapping[str, str]
    bench: Bench
    complaints: list[Complaint] = field(default_factory=list)

    def complain(self, field: str, wrong: str, instead: str | None = None) -> None:
        """Report an invalid field. `instead`: what is used in its place; None: the field is ignored."""
        remedy = "It was left out." if instead is None else f"Using {instead} instead."
        sentence = wrong if wrong.endswith("?") else f"{wrong.rstrip('. ')}."
        self.complaints.append(Complaint(field, f"{sentence} {remedy}"))

    def one_of(self, field: str, what: str, known: tuple[str, ...], default: str, of: str = "") -> str:
        text = self.params.get(field, "").strip()
        if not text or text in known:
            return text or default
        used = nearest(text, known) or default
        self.complain(field, str(UnknownName(what, text, known, of=of)), used)
        return used


def read(params: Mapping[str, str], bench: Bench) -> Link:
    """The form that the parameters describe, with defaults for missing fields and a complaint for each invalid one."""
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
        budget_s=_seconds(reader, "budget", BUDGET_S, form.budget_s),
        clock=cast(Clock, reader.one_of("clock", "clock", CLOCKS, form.clock)),
        load_s=_seconds(reader, "load", LOAD_S, form.load_s),
        energy=reader.one_of("energy", "energy", ("yes", "no"), "yes" if form.energy else "no") == "yes",
        naive=reader.one_of("naive", "naive", ("yes", "no"), "yes" if form.naive else "no") == "yes",
        untrusted=reader.one_of("untrusted", "untrusted", ("yes", "no"), "yes" if form.untrusted else "no") == "yes",
        compile_ahead=reader.one_of(
            "compile_ahead", "compile_ahead", ("yes", "no"), "yes" if form.compile_ahead else "no"
        )
        == "yes",
        data=_data(reader, op, form.data),
        baseline=reader.one_of("baseline", "baseline", form.variants, form.baseline, of="the chosen variants"),
    )
    known = (*_PLAN, *VIEW, *op.axis_names)
    for name in params:
        if name not in known:
            hint = nearest(name, known)
            wrong = f"'{name}' is not a parameter of this page" + (f"; did you mean '{hint}'?" if hint else "")
            reader.complain(name, wrong)
    return Link(form, params.get("run") or None, tuple(reader.complaints))


def _with_dtype(form: Form, reader: _Reader, op: Op) -> Form:
    dtype = reader.one_of("dtype", "dtype", op.dtypes, form.dtype, of=f"op {op.name!r}")
    computes = op.computes.get(dtype, ())
    if not computes:
        if reader.params.get("compute"):
            reader.complain("compute", f"op {op.name!r} in {dtype} has no choice of compute precision")
        return replace(form, dtype=dtype, compute=None)
    compute = reader.one_of("compute", "compute precision", computes, computes[0], of=f"op {op.name!r} in {dtype}")
    return replace(form, dtype=dtype, compute=compute)


def _with_direction(form: Form, reader: _Reader, op: Op) -> Form:
    default = default_direction(op)
    value = reader.params.get("direction", "").strip()
    if default is None:
        if value not in ("", *op.directions):
            reader.complain("direction", str(UnknownName("direction", value, op.directions, of=f"op {op.name!r}")))
        return form
    used = reader.one_of("direction", "direction", op.directions, default, of=f"op {op.name!r}")
    return replace(form, direction=cast(Direction, used))


def _with_variants(form: Form, reader: _Reader, op: Op) -> Form:
    offered = choices(reader.bench, op, form.device, form.dtype, form.compute, form.direction)
    default = default_variants(offered, op)
    if "variants" not in reader.params:
        return replace(form, variants=default, baseline=default_baseline(op, default))
    reasons = {c.variant.name: c.reason for c in offered}
    usable: list[str] = []
    for value in split_names(reader.params["variants"]):
        name = base_name(value)
        if name != value and name in reasons:
            wrong = f"{value!r}: this page measures {name!r} with its tuned or default configuration"
            reader.complain("variants", wrong, name)
        if name not in reasons:
            wrong = str(UnknownName("variant", name, reasons, of=f"op {op.name!r}"))
            used = nearest(name, [n for n, reason in reasons.items() if not reason])
            reader.complain("variants", wrong, used)
            usable += [used] if used is not None else []
        elif reasons[name]:
            reader.complain("variants", f"variant '{name}': {reasons[name]}")
        else:
            usable.append(name)
    if not usable:
        reader.complain("variants", "none of the variants can run here", ", ".join(default) or "none")
    variants = tuple(n for n in reasons if n in usable) or default
    return replace(form, variants=variants, baseline=default_baseline(op, variants))


def _with_sizes(form: Form, reader: _Reader, op: Op) -> Form:
    presets = {p.name: {a: p.sizes[a] for a in op.axis_names} for p in op.presets}
    given = {a: reader.params[a] for a in op.axis_names if reader.params.get(a, "").strip()}
    name = value = reader.params.get("preset") or None
    if value is not None and value not in presets:
        name = nearest(value, presets)
        wrong = str(UnknownName("preset", value, presets, of=f"op {op.name!r}"))
        reader.complain("preset", wrong, name or "the default sizes")
    if name is not None and not given:
        return replace(form, sizes_from="preset", preset=name, sizes=presets[name])
    # As in `bench.plan`: sizes that are given replace those of the preset.
    start = default_sizes(reader.bench, op, form.device) if name is None else presets[name]
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
    value, known = reader.params.get("data", "").strip(), data_kinds(op)
    if value in DATA and value not in known:
        reader.complain(
            "data", f"data: op {op.name!r} has no integer ids as input, so its data cannot be {value}", default
        )
        return default
    return reader.one_of("data", "input data", known, default)


def _seconds(reader: _Reader, field: str, bounds: tuple[float, float], default: float) -> float:
    text = reader.params.get(field, "").strip()
    if not text:
        return default
    low, high = bounds
    try:
        value = float(text)
    except ValueError:
        reader.complain(field, f"{field}: '{text}' is not a number of seconds", f"{default:g} s")
        return default
    used = default if isnan(value) else min(max(value, low), high)
    if used != value:
        reader.complain(field, f"{field}: '{text}' s is outside {low:g} to {high:g} s", f"{used:g} s")
    return used


def write(form: Form, run_id: str | None) -> dict[str, str]:
    """The parameters that reopen the form, with all fields, and the run if there is one."""
    preset = form.preset if form.sizes_from == "preset" else None
    params = {
        "op": form.op,
        "variants": ",".join(form.variants),
        "dtype": form.dtype,
        "compute": form.compute,
        "direction": form.direction,
        **(form.sizes if preset is None else {"preset": preset}),
        "budget": f"{form.budget_s:g}",
        "clock": form.clock,
        "load": f"{form.load_s:g}" if form.clock == "sustained" else None,
        "energy": "yes" if form.energy else "no",
        "naive": "yes" if form.naive else None,
        "untrusted": "yes" if form.untrusted else None,
        "compile_ahead": None if form.compile_ahead else "no",
        "data": form.data,
        "baseline": form.baseline,
        "device": form.device,
        "run": run_id,
    }
    return {name: value for name, value in params.items() if value is not None}
