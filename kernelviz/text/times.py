"""Times and the figures of a case in text."""

from dataclasses import dataclass

from kernelviz.core import Figure, Timing, units
from kernelviz.metrics.figures import back_to_back_over_warm, host_bound
from kernelviz.text.text import Text


@dataclass(frozen=True, slots=True)
class FigureText:
    """A figure: its field in `Timing`, its name on pages, and the question that it answers."""

    field: str
    name: str
    question: str


FIGURES = (
    FigureText("device_cold_s", "device cold", "How good is the kernel, with its data in memory? The headline."),
    FigureText(
        "device_warm_s", "device warm", "And with its data where the call itself leaves them, in the L2 if they fit?"
    ),
    FigureText("call_eager_s", "call eager", "How long is one Python call, from idle to done?"),
    FigureText("enqueue_s", "enqueue", "How much of that passes before Python goes on?"),
    FigureText("call_graph_s", "call by graph", "How long is it when it is launched as a graph of one call?"),
    FigureText("loop_s", "loop", "How long is one of many eager calls back to back?"),
    FigureText("busy_s", "busy", "During how much of the cold span did one of its kernels run?"),
)


def format_time(figure: Figure | None) -> Text:
    """A time with the half-width of its interval.

    >>> str(format_time(Figure(estimate=44.6e-6, low=44.5e-6, high=44.7e-6))), str(format_time(None))
    ('44.60 µs ± 0.2 %', 'unknown')
    """
    if figure is None:
        return Text("unknown")
    width = "" if figure.half_width is None else f" ± {units.width(figure.half_width)}"
    return Text(f"{units.seconds(figure.estimate)}{width}")


def format_host_bound(timing: Timing | None) -> str:
    """The badge of a case whose back-to-back calls wait for the host, with the ratio; empty for any other case.

    >>> format_host_bound(Timing(device_warm_s=Figure(estimate=1e-6), loop_s=Figure(estimate=5e-6)))
    'host-bound: loop 5.0× device warm'
    >>> format_host_bound(Timing())
    ''
    """
    return f"host-bound: loop {back_to_back_over_warm(timing):.1f}× device warm" if host_bound(timing) else ""
