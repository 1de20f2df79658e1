"""The columns of stored tunings."""

from typing import Protocol

from kernelviz.core import Tuning, units
from kernelviz.core.configuration import configuration_text
from kernelviz.tables.column import Column
from kernelviz.text import format_gain


class Stored(Protocol):
    """A stored tuning. `stale`: why it is not used, empty if it is."""

    @property
    def tuning(self) -> Tuning: ...

    @property
    def stale(self) -> str: ...


STORED_TUNINGS: tuple[Column[Stored], ...] = (
    Column("", "Variant", "", units.TEXT, lambda stored: stored.tuning.variant),
    Column("", "Problem", "", units.TEXT, lambda stored: stored.tuning.problem.key),
    Column("", "Device", "", units.TEXT, lambda stored: stored.tuning.device),
    Column("", "Configuration", "", units.TEXT, lambda stored: configuration_text(stored.tuning.configuration)),
    Column("", "Time", "Cold device time of the configuration.", units.SECONDS, lambda stored: stored.tuning.time_s.estimate),
    Column("", "Over the default", "Time of the default over its time, in shared rounds.", units.TEXT,
           lambda stored: format_gain(stored.tuning)),
    Column("", "When", "", units.TEXT, lambda stored: stored.tuning.created_at[:16].replace("T", " ")),
    Column("", "Run", "", units.TEXT, lambda stored: stored.tuning.run_id),
    Column("", "Used", "Whether later runs use it.", units.TEXT, lambda stored: f"no: {stored.stale}" if stored.stale else "yes"),
)  # fmt: skip
