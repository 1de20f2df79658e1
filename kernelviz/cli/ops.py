"""`kernelviz ops`: the ops and variants, and which of them can run here."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Annotated

import typer
from rich.text import Text

from kernelviz import bench as use_cases
from kernelviz.bench import Offer
from kernelviz.cli import console, options
from kernelviz.metrics.grouping import grouped
from kernelviz.ops import Op, Variant, catalogue
from kernelviz.ops.catalog.space import format_space
from kernelviz.text import describe_published_gain, describe_reason
from kernelviz.text.text import sentence_case


def ops(
    as_json: options.Json = False,
    device: options.DeviceId = None,
    as_markdown: Annotated[
        bool, typer.Option("--markdown", hidden=True, help="Print the tables of docs/ops.md.")
    ] = False,
) -> None:
    """List the ops and their variants, and show which variants can run on a device of this machine.

    The variants of an op are listed from the plainest to the best (its ladder). A variant that cannot run here is listed
    with the reason.
    """
    if as_markdown:
        console.echo(markdown(catalogue()))
        return
    bench = use_cases.current()
    device_id = bench.device(device or bench.default_device()).id
    offers = {name: bench.offers(name, device_id) for name in bench.ops()}
    if as_json:
        console.print_json([described(op, offers[name]) for name, op in bench.ops().items()])
        return
    headings = ("op", "variant", "backend", f"on {device_id}", "what it does")
    console.show(console.text_table(headings, (row for o in bench.ops().values() for row in _rows(o, offers[o.name]))))


def _rows(op: Op, offers: Sequence[Offer]) -> Iterator[list[str | Text]]:
    """A row for the op, and one for each of its variants."""
    description = f"{op.summary} ({', '.join(op.axis_names)}; {', '.join(op.dtypes)})"
    yield [Text(cell, style="bold") for cell in (op.name, "", "", "", description)]
    for offer in offers:
        variant = offer.variant
        remarks = (format_space(variant), describe_published_gain(variant.published), _remark(variant))
        description = " ".join(filter(None, (variant.summary, *remarks)))
        yield [
            "",
            variant.name,
            variant.backend,
            "✓" if offer.lack is None else f"✕ {describe_reason(offer.lack)}",
            description,
        ]


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
                "published": None if offer.variant.published is None else asdict(offer.variant.published),
            }
            for offer in offers
        ],
    }


def markdown(ops: Mapping[str, Op]) -> str:
    """The catalogue as Markdown, a table for each family, for docs/ops.md. The same on every machine.

    >>> markdown({})
    ''
    """
    return "\n\n".join(
        f"## {sentence_case(family)}\n{_table(of_family)}" for family, of_family in by_family(ops).items()
    )


def by_family(ops: Mapping[str, Op]) -> dict[str, list[Op]]:
    """The ops of each family, families in the order of their first op."""
    return grouped(ops.values(), key=lambda op: op.family)


def _table(ops: Sequence[Op]) -> str:
    lines = [
        "| op | computes | sizes | number formats | variants, from the plainest to the best |",
        "|---|---|---|---|---|",
    ]
    for op in ops:
        variants = ", ".join(" ".join(filter(None, (f"`{v.name}`", _remark(v)))) for v in op.variants)
        lines.append(
            f"| `{op.name}` | {op.summary} | {', '.join(op.axis_names)} | {', '.join(op.dtypes)} | {variants} |"
        )
    return "\n".join(lines)


def _remark(variant: Variant) -> str:
    return "(only when named)" if variant.only_when_named else ""
