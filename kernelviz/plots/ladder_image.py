"""One rung of a ladder as a small SVG image: bars of the rung before it, of itself, of the fastest library and of the roof."""

from collections.abc import Sequence
from html import escape

from kernelviz.metrics.ladder import Ladder, Metric, Step
from kernelviz.metrics.ladder_summary import roof_value, value_of, wrong_value_of
from kernelviz.metrics.rows import Row
from kernelviz.metrics.statistics import Interval
from kernelviz.plots.variant_styles import BAD, NEUTRAL, styles_of
from kernelviz.text.ladder import format_value
from kernelviz.text.results import format_variant

_WIDTH, _LABEL_PX, _VALUE_PX, _ROW_PX, _BAR_PX = 620, 210, 170, 22, 13
_MOST_LETTERS = 30


def bars_of_step(ladder: Ladder, step: Step, metric: Metric) -> str:
    """The image; empty if the rung has no value. Text has the colour of the page. A longer bar is a higher rate, or a longer
    time."""
    own = value_of(step.row, metric) or wrong_value_of(step.row, metric)
    if own is None:
        return ""
    before = _row_of(ladder, None if step.over is None else step.over.name)
    library, roof = ladder.library, roof_value(ladder, metric)
    bars: list[tuple[str, Interval, str]] = []
    styles = styles_of(
        ladder.problem.op, [step.variant, *([step.over.name] if step.over else [])], ladder.run.plan.variants
    )
    if step.over is not None and (value := value_of(before, metric)) is not None:
        bars.append((format_variant(step.over.name), value, styles[step.over.name].colour))
    wrong = "" if step.correct else " (wrong)"
    bars.append((f"{format_variant(step.variant)}{wrong}", own, styles[step.variant].colour if step.correct else BAD))
    if library is not None and (value := value_of(library, metric)) is not None:
        bars.append((format_variant(library.result.variant), value, NEUTRAL))
    if roof is not None:
        bars.append(("roof", Interval(roof, None, None), "none"))
    return _image(bars, metric, f"{format_variant(step.variant)}: {format_value(own, metric)}{wrong}")


def _row_of(ladder: Ladder, variant: str | None) -> Row | None:
    steps = (step for of in ladder.ladders for step in of.steps)
    return next((step.row for step in steps if step.variant == variant), None)


def _image(bars: Sequence[tuple[str, Interval, str]], metric: Metric, title: str) -> str:
    longest = max(value.estimate for _, value, _ in bars)
    room = _WIDTH - _LABEL_PX - _VALUE_PX
    parts = [f"<title>{escape(title)}</title>"]
    for number, (name, value, colour) in enumerate(bars):
        top = number * _ROW_PX + (_ROW_PX - _BAR_PX) / 2
        length = max(1.0, value.estimate / longest * room)
        frame = f' stroke="{NEUTRAL}" stroke-dasharray="4 3"' if colour == "none" else ""
        said = str(format_value(value, metric))
        short = name if len(name) <= _MOST_LETTERS else f"{name[: _MOST_LETTERS - 1]}…"
        parts += [
            f'<text x="{_LABEL_PX - 8}" y="{top + _BAR_PX - 2:.0f}" text-anchor="end">{escape(short)}</text>',
            f'<rect x="{_LABEL_PX}" y="{top:.1f}" width="{length:.1f}" height="{_BAR_PX}" fill="{colour}"{frame}/>',
            f'<text x="{_LABEL_PX + length + 6:.0f}" y="{top + _BAR_PX - 2:.0f}">{escape(said)}</text>',
        ]
    height = len(bars) * _ROW_PX
    return (
        f'<svg viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" role="img" font-size="12" '
        f'fill="currentColor">{"".join(parts)}</svg>'
    )
