"""A time in text."""

from kernelviz.core import Figure, units


def format_time(figure: Figure | None) -> str:
    """A time with its interval's half-width.

    >>> format_time(Figure(estimate=44.6e-6, low=44.5e-6, high=44.7e-6)), format_time(None)
    ('44.60 µs ± 0.2 %', 'unknown')
    """
    if figure is None:
        return "unknown"
    width = figure.half_width
    return units.seconds(figure.estimate) + ("" if width is None else f" ± {units.width(width)}")
