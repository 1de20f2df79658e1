"""The table of published claims as a Markdown document: verdicts on one device, how each is tested, contradictions, sources."""

from collections.abc import Sequence

from kernelviz.core import Device
from kernelviz.core.claim import ClaimCollection
from kernelviz.metrics.claims import Assessment
from kernelviz.tables.claims import COLUMNS, by_source, cells, describe_counts_of
from kernelviz.tables.column import View
from kernelviz.text.claims import RULE, describe_test, format_source


def _escaped(text: object) -> str:
    """Text in a cell of a table: on one line, with what Markdown would interpret escaped."""
    line = " ".join(str(text).split())
    for special in ("\\", "|", "<", "*", "_", "`", "["):
        line = line.replace(special, f"\\{special}")
    return line


def claims_document(
    device: Device, assessments: Sequence[Assessment], collection: ClaimCollection, measured_at: str | None
) -> str:
    """The document. `measured_at`: ISO time of the newest run behind it; None if nothing was measured."""
    columns = [c for c in COLUMNS if View.MARKDOWN & c.view and c.name != "source"]
    lines = [
        "# Published claims, and what this device measures",
        "",
        f"Written by `kernelviz claims --markdown` for {_escaped(device.name)}"
        + (f", with results up to {measured_at[:10]}." if measured_at else ". Nothing was measured."),
        str(describe_counts_of(assessments)),
        "",
        f"**Rule.** {RULE}",
    ]
    listed = {a.claim.source for a in assessments}
    contradictions = by_source(collection.contradictions)
    for source in collection.sources:
        if source.name not in listed:
            continue
        rows = [a for a in assessments if a.claim.source == source.name]
        lines += ["", f"## {_escaped(source.name)}", "", f"{_escaped(format_source(source))}."]
        lines += ["", f"| {' | '.join(c.heading for c in columns)} |", f"|{'---|' * len(columns)}"]
        lines += [f"| {' | '.join(_escaped(cell) for cell in cells(a, columns))} |" for a in rows]
        if source.name in contradictions:
            lines += ["", "Contradictions in this source:", ""]
            lines += [f"- {_escaped(one.sentence)}" for one in contradictions[source.name]]
    lines += ["", "## How each claim is tested", ""]
    for one in assessments:
        substitute = f" In its place: {_escaped(one.claim.substitute)}" if one.claim.substitute else ""
        remark = f" {_escaped(one.claim.remark)}" if one.claim.remark else ""
        lines.append(f"- **{_escaped(one.claim.id)}**: {_escaped(describe_test(one.claim))}{substitute}{remark}")
    return "\n".join(lines) + "\n"
