"""One thing that hampers measuring, in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning", "info"]
Subject = Literal["device", "driver", "nvrtc", "compiler", "mig", "tracer", "neighbours", "disk"]


@dataclass(frozen=True, slots=True)
class Notice:
    """What is wrong and what to do about it: one sentence each, without a full stop.

    `severity`: ``error`` when nothing can be measured, ``warning`` when something fails or figures may suffer, ``info``
    when it must only be known.
    """

    subject: Subject
    sentence: str
    remedy: str
    severity: Severity = "warning"


def of_reason(subject: Subject, reason: str, severity: Severity = "warning") -> Notice:
    """A reason as `hardware.discovery` words it, "what; remedy", as a notice.

    >>> of_reason("driver", "no driver is loaded; load it").remedy
    'load it'
    """
    what, _, remedy = reason.partition("; ")
    return Notice(subject, what, remedy, severity)
