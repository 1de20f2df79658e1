"""Whether the form shows the plan of the run on the page, and in which fields it differs."""

from kernelviz.bench import Bench
from kernelviz.core import Run, UsageError
from kernelviz.core.configuration import base_name
from kernelviz.core.sizes import expand, without_unused_offsets
from kernelviz.ui.bench.form import Form, choices


def differences(form: Form, run: Run, bench: Bench) -> tuple[str, ...]:
    """The names of the fields in which the form differs from the plan of the run. Variants of the run that cannot be chosen here
    do not count; `unavailable` lists them."""
    if form.op != run.plan.op:
        return ("op",)
    first = run.plan.problems[0]
    chosen = {base_name(v) for v in run.plan.variants} - set(unavailable(form, run, bench))
    pairs = {
        "data type": (form.dtype, first.dtype),
        "compute precision": (form.compute, first.compute),
        "direction": (form.direction or "forward", first.direction or "forward"),
        "sizes": (_sizes(form, bench), {tuple(sorted(p.sizes.items())) for p in run.plan.problems}),
        "variants": (set(form.variants), chosen),
        "input data": (form.data, first.data or "normal"),
    }
    return tuple(name for name, (here, there) in pairs.items() if here != there)


def unavailable(form: Form, run: Run, bench: Bench) -> tuple[str, ...]:
    """The variants of the run that the form cannot choose: this machine cannot run them, or does not know them."""
    op = bench.ops().get(run.plan.op)
    offered = () if op is None else choices(bench, op, form.device, form.dtype, form.compute, form.direction)
    usable = {c.variant.name for c in offered if c.usable}
    return tuple(name for name in dict.fromkeys(base_name(v) for v in run.plan.variants) if name not in usable)


def _sizes(form: Form, bench: Bench) -> set[tuple[tuple[str, int], ...]]:
    """Every size of the form; empty if they cannot be read."""
    try:
        every = without_unused_offsets(expand(bench.ops()[form.op].axis_names, form.sizes))
        return {tuple(sorted(sizes.items())) for sizes in every}
    except UsageError:
        return set()
