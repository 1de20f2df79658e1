"""Moments as they are stored: ISO 8601 in UTC, so that texts sort as the moments do."""

from datetime import UTC, datetime
from typing import Literal

Grain = Literal["seconds", "milliseconds"]


def iso(moment: datetime, grain: Grain = "milliseconds") -> str:
    """A moment with its zone as text; what is finer than the grain is cut off.

    >>> iso(datetime(2026, 11, 21, 10, 42, 0, 123456, UTC)), iso(datetime(2026, 11, 21, 10, 42, tzinfo=UTC), "seconds")
    ('2026-11-21T10:42:00.123+00:00', '2026-11-21T10:42:00+00:00')
    """
    return moment.astimezone(UTC).isoformat(timespec=grain)


def now(grain: Grain = "milliseconds") -> str:
    """This moment as text."""
    return iso(datetime.now(UTC), grain)
