"""Rows of the table of runs: the stored header, the summary of a run for lists, and its current status."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, Table, select

from kernelviz.core import LIVING, SCHEMA, Environment, Method, Plan, Status, Struct, UnknownRun
from kernelviz.store import tables
from kernelviz.store.database import decoded
from kernelviz.store.process_presence import Presence

AnyRow = Row[*tuple[Any, ...]]
"""A row of any columns."""


class RunHeader(Struct, frozen=True, kw_only=True):
    """The part of a run that the database stores beside its results and the indexed columns."""

    schema: str = SCHEMA
    environment: Environment
    method: Method
    plan: Plan


@dataclass(frozen=True, slots=True)
class CaseCounts:
    """How many cases of a run have a result (`done`); how many of these have no correct time (`failed`), and how many of those
    were not tried, because the variant cannot run there or does not take the size (`unavailable`); how many were cancelled."""

    done: int = 0
    failed: int = 0
    unavailable: int = 0
    cancelled: int = 0


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run without its results. `status` is ``interrupted`` when the process that measured it is gone.

    `done`, `failed`, `unavailable` and `cancelled` as in `CaseCounts`. `spent_s`: how long it used its device, all its parts
    together (0: measured by an earlier version, or elsewhere).
    """

    id: str
    title: str
    op: str
    device: str
    created_at: str
    status: Status
    owner: str
    note: str
    cases: int
    done: int
    failed: int
    unavailable: int
    cancelled: int
    presence: Presence
    deleted_at: str | None
    spent_s: float = 0.0


def header_of(row: AnyRow) -> RunHeader:
    """The header of a run's row. Errors: DamagedRow."""
    return decoded(row.header, RunHeader, f"run {row.id}")


def stored_row(
    connection: Connection, run_id: str, table: Table = tables.runs, unknown: type[UnknownRun] = UnknownRun
) -> Row[Any]:
    """The row of a run in a table of runs. Errors: `unknown`."""
    row = connection.execute(select(table).where(table.c.id == run_id)).one_or_none()
    if row is None:
        raise unknown(run_id)
    return row


def presence_of(row: Row[Any]) -> Presence:
    """The process that measures the run of a row, or measured it last."""
    return Presence(host=row.host, boot_id=row.boot_id, pid=row.pid, started_s=row.pid_started_s)


def status_of(row: Row[Any]) -> Status:
    """The stored status, or ``interrupted`` where the run's process has ended."""
    stored: Status = row.status
    return "interrupted" if stored in LIVING and not presence_of(row).alive() else stored


def run_row(row: Row[Any], counts: CaseCounts) -> RunRow:
    """The row with the counts of its results."""
    return RunRow(
        id=row.id,
        title=row.title,
        op=row.op,
        device=row.device,
        created_at=row.created_at,
        status=status_of(row),
        owner=row.owner,
        note=row.note,
        cases=row.cases,
        done=counts.done,
        failed=counts.failed,
        unavailable=counts.unavailable,
        cancelled=counts.cancelled,
        presence=presence_of(row),
        deleted_at=row.deleted_at,
        spent_s=row.spent_s,
    )
