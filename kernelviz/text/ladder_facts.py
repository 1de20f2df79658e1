"""What is said of one rung of a ladder, in one order for the page, the files and the terminal."""

from kernelviz.metrics.ladder import BackendLadder, Ladder, Metric, Step
from kernelviz.metrics.ladder_changes import LadderChanges
from kernelviz.metrics.ladder_summary import value_of
from kernelviz.metrics.source_changes import compiled_values
from kernelviz.text.ladder import (
    Naming,
    describe_code_age,
    describe_gain,
    describe_published,
    describe_techniques,
    describe_wrong_value,
    format_doubt,
    format_value,
)
from kernelviz.text.ladder_changes import describe_code_changes, describe_source_changes, describe_why
from kernelviz.text.results import format_configuration, format_variant
from kernelviz.text.roofs import format_share

_BEING_READ, _WHEN_READ = "it is being read …", "known when it has been read."


def facts_of_step(
    ladder: Ladder,
    of: BackendLadder,
    step: Step,
    changes: LadderChanges,
    metric: Metric,
    name: Naming = format_variant,
    *,
    reading: bool = False,
) -> tuple[tuple[str, str], ...]:
    """The label and the text of each fact that is known: what it reaches and gains, what was published, what changed and why that
    helps. A fact that is the same for all rungs, such as a missing source, is left out. `reading`: the machine code is being
    read, which is said where its facts will be."""
    unread = reading and step.over is not None and step.result is not None and bool(step.result.code)
    code, source = changes.code.get(step.variant), changes.sources.get(step.variant)
    adds = describe_techniques(step) if step.over is not None else ""
    facts = [
        ("Reached", _reached(ladder, step, metric)),
        (
            "Loss here" if step.kind == "slower" else "Gain here",
            "" if step.kind == "first" else str(describe_gain(step, name)),
        ),
        *(("Published", f"{text}.") for text in describe_published(step, ladder.problem, name)),
        ("Configuration", _configuration(step)),
        ("New technique", f"{adds}." if adds else ""),
        ("Machine code", _BEING_READ if unread else str(describe_code_changes(code)) if changes.code_known else ""),
        ("Why", _WHEN_READ if unread else str(describe_why(code))),
        ("Source", str(describe_source_changes(source)) if changes.sources_known else ""),
        ("Note", str(describe_code_age(step, of))),
    ]
    return tuple((label, text) for label, text in facts if text)


def _configuration(step: Step) -> str:
    """Which configuration of a variant with parameters was measured, so that nobody takes a default for a tuned one, and which
    macros have other values than the parameters of their names."""
    said = str(format_configuration(step.result)) if step.result is not None else ""
    if step.result is None or not said:
        return ""
    macros = {name: value for code in step.result.code or () for name, value in code.defines.items()}
    compiled = compiled_values(step.result.configuration or {}, macros)
    values = ", ".join(f"{name} {value}" for name, value in compiled.items())
    return f"{said}{f'; compiled with {values}' if values else ''}."


def _reached(ladder: Ladder, step: Step, metric: Metric) -> str:
    """The value with its share of the roof, and a badge if it may be wrong; of a wrong result, what it would have been."""
    if not step.correct or step.row is None:
        wrong = str(describe_wrong_value(step, metric))
        return f"{wrong}." if wrong else ""
    share = "" if step.row.efficiency is None else f", {format_share(step.row.efficiency)} of the roof"
    return f"{format_value(value_of(step.row, metric), metric)}{share}{format_doubt(ladder, step)}."
