"""Words from documents, links and plug-ins are shown as they are: never as Markdown, never as HTML."""

from __future__ import annotations

import re
from datetime import UTC, datetime

_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+\-.!|<>$~:&\"'^=])")


def plain(text: object) -> str:
    """`text` with every character that Markdown could read as more than itself escaped, on one line.

    >>> print(plain("<b>x</b> $y$ :red[z]"))
    \\<b\\>x\\</b\\> \\$y\\$ \\:red\\[z\\]
    """
    return _SPECIAL.sub(r"\\\1", " ".join(str(text).split()))


def when(stamp: str | None, now: datetime | None = None) -> str:
    """A stored time as people say it, in the server's time zone.

    >>> when("2026-11-21T10:42:00+00:00", datetime(2026, 11, 21, 12, tzinfo=UTC)).startswith("today ")
    True
    >>> when(None), when("yesterday-ish")
    ('at an unknown time', 'yesterday-ish')
    """
    if not stamp:
        return "at an unknown time"
    try:
        moment = datetime.fromisoformat(stamp).astimezone()
    except ValueError:
        return stamp
    today = (now or datetime.now(UTC)).astimezone().date()
    return f"{'today' if moment.date() == today else moment.strftime('%Y-%m-%d')} {moment.strftime('%H:%M')}"
