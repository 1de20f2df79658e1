"""The card of a run: one SVG image for chat and slides, with answer, small chart, device, date and link."""

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

from kernelviz.core import Run
from kernelviz.metrics.figures import Headline
from kernelviz.metrics.insight import insight
from kernelviz.metrics.rows import Row, rows
from kernelviz.metrics.sketch import Sketch, sketch
from kernelviz.metrics.sweep import telling_axes
from kernelviz.metrics.tuning import is_tuning, tried
from kernelviz.plots.frame import evenly_spaced, shorten
from kernelviz.plots.marker_images import shape
from kernelviz.plots.sketch_image import Frame, frame_of, image, plot
from kernelviz.plots.variant_styles import Styles, styles_of
from kernelviz.text import Tile, format_size, format_sizes, format_variant
from kernelviz.text.insight import QUANTITIES, format_quantity, insight_sentence
from kernelviz.text.text import Text
from kernelviz.text.tuning import describe_best_configuration
from kernelviz.text.tuning_tiles import tiles_of_run

Scheme = Literal["light", "dark"]
WIDTH, HEIGHT = 1200, 630
"""The size that chat programs show as the large preview of a link."""
_EDGE = 48
_MOST_IN_LEGEND = 11
_MOST_TICKS = 6
_CHART_WIDTH = 760
_LEGEND_X = _EDGE + _CHART_WIDTH + 40
_EM = 0.56
"""Mean width of a character as a part of the font size. SVG has no line breaks, so text is wrapped by this estimate."""


_BOLD_EM = 0.66
"""The same of bold text."""


@dataclass(frozen=True, slots=True)
class _Colours:
    background: str
    text: str
    pale: str
    accent: str


_COLOURS: dict[Scheme, _Colours] = {
    "light": _Colours("#FFFFFF", "#0F1311", "#434A47", "#2F6B4F"),
    "dark": _Colours("#0F1413", "#E6ECE9", "#CDD4D0", "#6FCF97"),
}
"""As the theme of the pages (.streamlit/config.toml)."""


def card(
    run: Run, *, headline: Headline = "cold", link: str = "", scheme: Scheme = "light", beside: Sequence[str] = ()
) -> str:
    """The card as an SVG document. `link`: where the run can be opened; without one, the card names the run's id.

    `beside`: the variants of the whole run, of which `run` may be a part, see `styles_of`.
    """
    colours = _COLOURS[scheme]
    table = rows(run, run.environment.roofs, headline)
    said = _sentence(run, table, headline)
    drawing = sketch(run, headline)
    styles = styles_of(run.plan.op, drawing.variants, beside)
    answers = tiles_of_run(run, table, headline)
    return image(
        WIDTH,
        HEIGHT,
        [
            f"<title>{escape(f'{_heading(run)}. {said}')}</title>",
            _style(colours),
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="{colours.background}"/>',
            f'<rect width="12" height="{HEIGHT}" fill="{colours.accent}"/>',
            _text(_EDGE, 62, shorten(_heading(run), 44), size=34, weight=700),
            _text(_EDGE, 94, shorten(_where(run), 96), size=20, pale=True),
            *_lines(_EDGE, 146, str(said), size=_size_of(str(said)), width=WIDTH - 2 * _EDGE, most=2),
            *_tiles(answers, 222),
            *_chart(drawing, styles, top=350, height=200),
            *_legend(drawing, styles, top=330),
            _text(_EDGE, HEIGHT - 22, shorten(link or f"run {run.id}", 90), size=18, pale=True),
            _text(
                WIDTH - _EDGE,
                HEIGHT - 22,
                f"measured with kernelviz, {_method(headline)}",
                size=18,
                pale=True,
                end=True,
            ),
        ],
    )


def _sentence(run: Run, table: Sequence[Row], headline: Headline) -> Text:
    """The insight of a run; of a tuning, the configuration that it chose."""
    if headline == "cold" and is_tuning(run):
        return describe_best_configuration(tried(run))
    return insight_sentence(insight(table, headline))


def _size_of(sentence: str) -> int:
    """The font size at which the sentence fits on two lines.

    >>> _size_of("short"), _size_of("a long sentence " * 9)
    (29, 25)
    """
    fitting = int(2 * (WIDTH - 2 * _EDGE) * 0.92 / (max(len(sentence), 1) * _EM))
    return max(16, min(29, fitting))


def _heading(run: Run) -> str:
    first = run.plan.problems[0]
    parts = (run.plan.op, first.dtype, first.compute, "backward" if first.direction == "backward" else None)
    return ", ".join(filter(None, parts))


def _where(run: Run) -> str:
    problems = run.plan.problems
    if len(problems) == 1:
        sizes = format_sizes(problems[0], telling_axes(problems)) or format_sizes(problems[0])
    else:
        sizes = f"{len(problems)} sizes"
    return f"{run.environment.device.name} · {run.created_at[:10]} · {sizes}"


def _method(headline: Headline) -> str:
    return "time with flushed caches" if headline == "cold" else "time with warm caches"


def _style(colours: _Colours) -> str:
    return (
        f"<style>text {{ font-family: Inter, 'Source Sans', 'DejaVu Sans', sans-serif; fill: {colours.text} }} "
        f".pale {{ fill: {colours.pale} }}</style>"
    )


def _text(x: float, y: float, text: str, *, size: int, weight: int = 400, pale: bool = False, end: bool = False) -> str:
    look = f'font-size="{size}"' + (f' font-weight="{weight}"' if weight != 400 else "")
    look += (' class="pale"' if pale else "") + (' text-anchor="end"' if end else "")
    return f'<text x="{x:.0f}" y="{y:.0f}" {look}>{escape(text)}</text>'


def _lines(x: float, y: float, text: str, *, size: int, width: float, most: int, weight: int = 600) -> list[str]:
    """The text on at most that many lines."""
    pale = weight == 400
    return [
        _text(x, y + i * size * 1.25, line, size=size, weight=weight, pale=pale)
        for i, line in enumerate(_wrapped(text, size, width, most))
    ]


def _wrapped(text: str, size: int, width: float, most: int | None = None) -> list[str]:
    """The lines of the text, of which at most that many are kept. A percentage stays on one line.

    >>> _wrapped("mean, 11 sizes; best 100 %", 15, 205)
    ['mean, 11 sizes; best', '100 %']
    """
    unbroken = text.replace(" %", "\u00a0%")
    lines = textwrap.wrap(unbroken, int(width / (size * _EM)), max_lines=most, placeholder=" …")
    return [line.replace("\u00a0", " ") for line in lines]


def _tiles(answers: Sequence[Tile], top: float) -> list[str]:
    """The answers about the run side by side: label, value, basis."""
    width = (WIDTH - 2 * _EDGE) / max(len(answers), 1)
    parts = []
    for number, tile in enumerate(answers):
        x = _EDGE + number * width
        parts += [
            _fitted(x, top, tile.label, width - 16, size=16, pale=True),
            _fitted(x, top + 34, tile.value, width - 16, size=27, weight=700),
            *_lines(
                x, top + 57, tile.basis, size=_basis_size(tile.basis, width - 16), width=width - 16, most=3, weight=400
            ),
        ]
    return parts


def _basis_size(basis: str, width: float) -> int:
    """The font size at which the basis of a tile fits on three lines.

    >>> _basis_size("mean, 17 sizes; best 102 %", 200), _basis_size("one of many words " * 5, 200)
    (15, 12)
    """
    sizes = (15, 14, 13, 12)
    return next((s for s in sizes if len(_wrapped(basis, s, width)) <= 3), sizes[-1])


def _fitted(x: float, y: float, text: str, width: float, *, size: int, weight: int = 400, pale: bool = False) -> str:
    """One line that fits into the width: smaller, down to half of its size, then cut off."""
    em = _EM if weight == 400 else _BOLD_EM
    fitting = max(size // 2, min(size, int(width / (max(len(text), 1) * em))))
    return _text(x, y, shorten(text, int(width / (fitting * em))), size=fitting, weight=weight, pale=pale)


def _chart(drawing: Sketch, styles: Styles, top: float, height: float) -> list[str]:
    frame = frame_of(drawing, _EDGE, top + 8, _CHART_WIDTH, height - 8)
    if frame is None:
        return []
    axes = " = ".join(drawing.axes)
    sizes = sorted({x for line in drawing.lines for x in line.x})
    above = math.exp(frame.y[1]) if frame.log_y else frame.y[1]
    best = min if drawing.quantity == "time" else max
    value = best(y for line in drawing.lines for y in line.y)
    kind = "shortest" if drawing.quantity == "time" else "largest"
    roof = "; dashed: measured roof" if drawing.roof else ""
    said = f"{QUANTITIES[drawing.quantity]} by {axes} ({kind}: {format_quantity(drawing.quantity, value)}{roof})"
    return [
        _text(_EDGE, top - 6, said, size=16, pale=True),
        *plot(drawing, styles, frame),
        *(_size_label(frame, size, above, bottom=top + height) for size in evenly_spaced(sizes, _MOST_TICKS)),
    ]


def _size_label(frame: Frame, size: int, above: float, bottom: float) -> str:
    x, _ = frame.place(size, above)
    half = len(format_size(size)) * 15 * _EM / 2
    x = min(x, frame.left + frame.width + 12 - half)  # so that the last one does not reach the legend
    return f'<text x="{x:.0f}" y="{bottom + 18:.0f}" font-size="15" text-anchor="middle" class="pale">{format_size(size)}</text>'


def _legend(drawing: Sketch, styles: Styles, top: float) -> list[str]:
    """Marker and name of each variant, in the order of the plan."""
    names = list(dict.fromkeys(line.variant for line in drawing.lines))
    listed = names if len(names) <= _MOST_IN_LEGEND else names[: _MOST_IN_LEGEND - 1]
    parts = []
    for number, name in enumerate(listed):
        y = top + 14 + number * 21
        parts.append(f'<g transform="translate({_LEGEND_X} {y - 5})">{shape(styles[name])}</g>')
        parts.append(_text(_LEGEND_X + 16, y, shorten(format_variant(name), 32), size=16))
    if len(listed) < len(names):
        more = f"and {len(names) - len(listed)} more"
        parts.append(_text(_LEGEND_X + 16, top + 14 + len(listed) * 21, more, size=16, pale=True))
    return parts
