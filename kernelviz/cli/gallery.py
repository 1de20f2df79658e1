"""`kernelviz gallery`: the recorded runs that come with kernelviz, by family, and the ops that have none yet."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from kernelviz import bench as use_cases
from kernelviz.bench.gallery import gallery as recorded
from kernelviz.bench.gallery import records
from kernelviz.cli import console, options
from kernelviz.core import units
from kernelviz.tables.column import Column

_Record = Mapping[str, Any]


def gallery(
    family: Annotated[str | None, typer.Option(metavar="NAME", help="Only ops of this family.")] = None,
    op: Annotated[str | None, typer.Option(metavar="OP", help="Only this op.")] = None,
    device: Annotated[
        str | None, typer.Option(metavar="NAME", help='Only runs of this device, for example "NVIDIA H200".')
    ] = None,
    as_json: options.Json = False,
) -> None:
    """List the recorded runs that come with kernelviz, with what each shows.

    An op without a recorded run is listed with the command that measures it here. `kernelviz runs show RUN` prints a run.
    """
    listed = records(recorded(use_cases.current(), family=family, op=op, device=device))
    console.show_rows(_COLUMNS, listed, dict, as_json=as_json, nothing="no op is installed here")


def _op_pass(record: _Record) -> str:
    return f"{record['op']} backward" if record["direction"] == "backward" else str(record["op"])


def _said(record: _Record) -> str:
    return str(record["insight"] or f"not recorded; `{record['command']}` measures it here")


_COLUMNS: tuple[Column[_Record], ...] = (
    Column("", "Family", "", units.TEXT, lambda record: record["family"]),
    Column("", "Op", "", units.TEXT, _op_pass),
    Column("", "Device", "", units.TEXT, lambda record: record["device"]),
    Column("", "Run", "", units.TEXT, lambda record: record["run"]),
    Column("", "Insight", "", units.TEXT, _said),
)
