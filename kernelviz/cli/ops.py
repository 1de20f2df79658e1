"""`kernelviz ops`: the ops and variants, and which of them can run here."""

from collections.abc import Mapping, Sequence
from typing import Annotated

import typer
from rich.table import Table

from kernelviz import bench as use_cases
from kernelviz.bench import Bench, Offer
from kernelviz.cli import console, options
from kernelviz.ops import Op, Variant, catalogue
from kernelviz.ops.catalog.space import format_space
from kernelviz.text.failures import describe_reason


def ops(
    as_json: options.Json = False,
    device: options.DeviceId = None,
    as_markdown: Annotated[bool, typer.Option("--markdown", hidden=True, help="Print the table of README.md.")] = False,
) -> None:
    """List the ops and their variants, and show which variants can run on a device of this machine.

    The variants of an op are listed from the plainest to the best (its ladder). A variant that cannot run here is listed
    with the reason.
    """
    if as_markdown:
        typer.echo(markdown(catalogue()))
        return
    print_ops(use_cases.current(), device, as_json=as_json)


def print_ops(bench: Bench, device: str | None, *, as_json: bool) -> None:
    """Print the catalogue, with what is available on the device. Default: the bench's default device."""
    device_id = bench.device(device or bench.default_device()).id
    offers = {name: bench.offers(name, device_id) for name in bench.ops()}
    if as_json:
        console.print_json([described(op, offers[name]) for name, op in bench.ops().items()])
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("op", "variant", "backend", f"on {device_id}", "what it does"):
        table.add_column(heading, overflow="fold")
    for name, op in bench.ops().items():
        sizes = ", ".join(op.axis_names)
        table.add_row(name, "", "", "", f"{op.summary} ({sizes}; {', '.join(op.dtypes)})", style="bold")
        for offer in offers[name]:
            words = " ".join(filter(None, (offer.variant.summary, format_space(offer.variant), _remark(offer.variant))))
            table.add_row("", offer.variant.name, offer.variant.backend, _here(offer), words)
    console.show(table)


def described(op: Op, offers: Sequence[Offer]) -> dict[str, object]:
    """An op as JSON. Other programs read these fields, so their names stay."""
    return {
        "name": op.name,
        "family": op.family,
        "axes": list(op.axis_names),
        "dtypes": list(op.dtypes),
        "variants": [
            {
                "name": offer.variant.name,
                "backend": offer.variant.backend,
                "summary": offer.variant.summary,
                "available": offer.available,
                "reason": "" if offer.lack is None else str(describe_reason(offer.lack)),
                "only_when_named": offer.variant.only_when_named,
            }
            for offer in offers
        ],
    }


def markdown(ops: Mapping[str, Op]) -> str:
    """The catalogue as a Markdown table, for the README. The same on every machine.

    >>> print(markdown({}))
    | op | computes | sizes | number formats | variants, from the plainest to the best |
    |---|---|---|---|---|
    """
    lines = [
        "| op | computes | sizes | number formats | variants, from the plainest to the best |",
        "|---|---|---|---|---|",
    ]
    for name, op in ops.items():
        variants = ", ".join(" ".join(filter(None, (f"`{v.name}`", _remark(v)))) for v in op.variants)
        lines.append(f"| `{name}` | {op.summary} | {', '.join(op.axis_names)} | {', '.join(op.dtypes)} | {variants} |")
    return "\n".join(lines)


def _remark(variant: Variant) -> str:
    return "(only when named)" if variant.only_when_named else ""


def _here(offer: Offer) -> str:
    return "✓" if offer.lack is None else f"✕ {describe_reason(offer.lack)}"
