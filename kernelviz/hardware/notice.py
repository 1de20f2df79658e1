"""A notice: one problem of this machine for measuring, as text."""

from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning", "info"]
Subject = Literal["device", "driver", "nvrtc", "compiler", "mig", "tracer", "neighbours", "disk"]


@dataclass(frozen=True, slots=True)
class Notice:
    """A problem and its remedy: one sentence each, without a full stop.

    `severity`: ``error`` when nothing can be measured, ``warning`` when something fails or figures may be less exact, ``info``
    for information only.
    """

    subject: Subject
    sentence: str
    remedy: str
    severity: Severity = "warning"


def of_reason(subject: Subject, reason: str, severity: Severity = "warning") -> Notice:
    """Convert a reason of `hardware.discovery`, "what; remedy", to a notice.

    >>> of_reason("driver", "no driver is loaded; load it").remedy
    'load it'
    """
    what, _, remedy = reason.partition("; ")
    return Notice(subject, what, remedy, severity)
