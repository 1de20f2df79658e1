"""A run on one line, as lists and boxes show it."""

from kernelviz.bench import RunSummary
from kernelviz.ui.shared.text import when


def run_label(run: RunSummary) -> str:
    """The run's name, its device unless the name says it, and when it was measured (or that it came with kernelviz)."""
    origin = "came with kernelviz" if run.shipped else when(run.created_at)
    device = "" if run.device.removeprefix("NVIDIA ") in run.name else f" · {run.device}"
    return f"{run.name}{device} · {origin}"
