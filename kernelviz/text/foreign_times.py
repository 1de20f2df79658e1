"""Times that another tool measured, in text."""

from kernelviz.core import Run
from kernelviz.metrics import foreign_times
from kernelviz.text.text import Text

NOT_OURS = (
    "These times were measured by another tool and are shown as its file states them: without an interval, a check of the "
    "result or a cost."
)
"""Stands above such times wherever they are shown."""


def describe_methods(run: Run) -> dict[str, Text]:
    """How each time was measured, as the first case states it."""
    return {
        name: Text(method or "the file does not say how it was measured") + ("" if same else " (the first case)")
        for name, (method, same) in foreign_times.methods(run).items()
    }
