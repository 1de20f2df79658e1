"""Times and the figures of a case in text."""

from dataclasses import dataclass

from kernelviz.core import Figure, Timing, units
from kernelviz.metrics.figures import back_to_back_over_warm, host_bound
from kernelviz.metrics.stability import Stability, stability
from kernelviz.text.text import Text


@dataclass(frozen=True, slots=True)
class FigureText:
    """A figure: its field in `Timing`, its name on pages, and the question that it answers."""

    field: str
    name: str
    question: str


FIGURES = (
    FigureText(
        "device_cold_s", "device cold", "How fast is the kernel if its data come from memory? This is the main metric."
    ),
    FigureText(
        "device_warm_s",
        "device warm",
        "How fast is it if calls repeat on the same data, which stay in the caches if they fit?",
    ),
    FigureText(
        "call_eager_s",
        "call eager",
        "How long does one Python call take, from an idle device until its result is ready?",
    ),
    FigureText("enqueue_s", "enqueue", "How much of that time passes before Python continues?"),
    FigureText("call_graph_s", "call by graph", "How long does the call take if it is launched as a CUDA graph?"),
    FigureText("loop_s", "loop", "How long does a call take on average if many run back to back?"),
    FigureText("busy_s", "busy", "During how much of the cold time did one of its kernels run?"),
)


def format_time(figure: Figure | None, levels: Stability | None = None) -> Text:
    """A time with the half-width of its interval, or both levels of a time that is not stable. `levels`: of a figure without
    samples, which cannot say whether it is stable.

    >>> str(format_time(Figure(estimate=44.6e-6, low=44.5e-6, high=44.7e-6))), str(format_time(None))
    ('44.60 µs ± 0.2 %', 'unknown')
    """
    if figure is None:
        return Text("unknown")
    levels = levels or stability(figure)
    if levels.levels_s is not None:
        first, second = (units.seconds(level_s, 3) for level_s in levels.levels_s)
        return Text(f"{first}{', then' if levels.kind == 'change' else ' or'} {second} (not stable)")
    width = "" if figure.half_width is None else f" ± {units.width(figure.half_width)}"
    return Text(f"{units.seconds(figure.estimate)}{width}")


def format_host_bound(timing: Timing | None) -> str:
    """The badge of a case whose back-to-back calls wait for the host, with the ratio; empty for any other case.

    >>> format_host_bound(Timing(device_warm_s=Figure(estimate=1e-6), loop_s=Figure(estimate=5e-6)))
    'CPU-bound: back-to-back calls take 5.0× the kernel time'
    >>> format_host_bound(Timing())
    ''
    """
    return (
        f"CPU-bound: back-to-back calls take {back_to_back_over_warm(timing):.1f}× the kernel time"
        if host_bound(timing)
        else ""
    )
