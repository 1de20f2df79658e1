"""Words from documents, links and plug-ins are shown as they are: never as Markdown, never as HTML."""

from __future__ import annotations

import re
from datetime import UTC, datetime

_SPECIAL = re.compile(r"([\\`*_\[\]<>$~:&#|])")
_MARK = re.compile(r"^([-+=])")
"""What makes a list or a heading at the beginning of a line, and there only."""
_LIST_NUMBER = re.compile(r"^(\d+)([.)])(?=\s|$)")


def plain(text: object) -> str:
    """`text` on one line with every character escaped that Streamlit's Markdown could read as more than itself.

    Only those: what a widget's label escapes for nothing, a screen reader reads aloud.

    >>> print(plain("<b>x</b> $y$ :red[z] (m = 4)"))
    \\<b\\>x\\</b\\> \\$y\\$ \\:red\\[z\\] (m = 4)
    """
    line = " ".join(str(text).split())
    return _LIST_NUMBER.sub(r"\1\\\2", _MARK.sub(r"\\\1", _SPECIAL.sub(r"\\\1", line)))


def when(stamp: str | None, now: datetime | None = None) -> str:
    """A stored time as people say it, in the server's time zone.

    >>> when("2026-11-21T10:42:00+00:00", datetime(2026, 11, 21, 12, tzinfo=UTC)).startswith("today ")
    True
    >>> when(None), when("yesterday-ish"), when("9999-12-31T23:59:59-14:00")
    ('at an unknown time', 'yesterday-ish', '9999-12-31T23:59:59-14:00')
    """
    if not stamp:
        return "at an unknown time"
    try:
        moment = datetime.fromisoformat(stamp).astimezone()
    except (ValueError, OverflowError):  # the latter beside the years 1 and 9999: a zone moves it out of them
        return stamp
    today = (now or datetime.now(UTC)).astimezone().date()
    return f"{'today' if moment.date() == today else moment.strftime('%Y-%m-%d')} {moment.strftime('%H:%M')}"
