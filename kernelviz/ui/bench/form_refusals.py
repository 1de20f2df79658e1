"""Why the form cannot be measured, or not all of it, in text beside the button Run."""

from collections.abc import Sequence

from kernelviz.bench import Bench
from kernelviz.bench.planning import TooLarge
from kernelviz.core import Plan, units
from kernelviz.metrics.sweep import telling_axes
from kernelviz.text import format_sizes
from kernelviz.ui.bench.form import Form, choices


def describe_lacking_variants(bench: Bench, form: Form) -> str:
    """Why nothing can be measured while no variant is chosen."""
    op = bench.ops()[form.op]
    offered = choices(bench, op, form.device, form.dtype, form.compute, form.direction)
    if any(choice.usable for choice in offered):
        return "No variant is chosen. Choose at least one above."
    reasons = "; ".join(dict.fromkeys(choice.reason for choice in offered))
    return f"No variant of {form.op} can run on this device: {reasons}."


def describe_too_large(too_large: Sequence[TooLarge], plan: Plan) -> str:
    """Which sizes of a plan need more memory than the device has, with the smallest of them."""
    first = min(too_large, key=lambda one: one.needed_bytes)
    sizes = format_sizes(first.problem, telling_axes(plan.problems))
    count = f"{len(too_large)} of {len(plan.problems)} sizes {'does' if len(too_large) == 1 else 'do'} not fit"
    return (
        f"{count} into the memory of the device ({units.size_bytes(first.memory_bytes)}): {sizes} needs "
        f"{units.size_bytes(first.needed_bytes)}. Only the others are measured."
    )
