"""`kernelviz checklist`: share of the roof, block size, launch cost, fusion, occupancy and accuracy of each case, by facts."""

from typing import Annotated, cast

import typer
from rich.console import Group
from rich.text import Text

from kernelviz import bench as use_cases
from kernelviz.bench.checklist import checked_cases, newest_run, records
from kernelviz.bench.comparison import opened
from kernelviz.cli import console, options
from kernelviz.core import BadField
from kernelviz.metrics.checklist import NEEDS_ROOFS, Unknown
from kernelviz.metrics.figures import Headline
from kernelviz.tables.checklist import CHECKLIST
from kernelviz.tables.column import View, select_with_sizes
from kernelviz.text.checklist import NAMES, RULES
from kernelviz.text.report import heading


def checklist(
    run: Annotated[
        str | None,
        typer.Argument(
            metavar="RUN|FILE", help="Id of a run, or a file with one. Default: the newest run of this machine."
        ),
    ] = None,
    variant: options.OnlyVariant = None,
    l2: options.Headline = "cold",
    as_json: options.Json = False,
) -> None:
    """Tick six points of each case of a run: share of the roof, block size, launch cost, fusion, occupancy, accuracy.

    Each point is passed (✓), not passed (✕) or unknown (?), by a rule with a threshold and from facts of the case: its time, the
    measured roofs, its kernels and the correctness gate. The rules are printed below the table. A point says where to look, not
    that a kernel is slow.
    """
    bench = use_cases.current()
    run_id = run if run is not None else newest_run(bench)
    if run_id is None:
        raise BadField(
            "RUN", "", "no run is stored here; `kernelviz run` makes one, or name one of `kernelviz gallery`"
        )
    stored = opened(bench, run_id)
    cases = checked_cases(bench, stored, variant=variant, l2=l2)
    if as_json:
        console.print_json(records(cases))
        return
    if not cases:
        console.err().print(f"run {run_id} has no results yet")
        return
    columns = select_with_sizes(CHECKLIST, cases, View.TERMINAL, stored.plan.problems)
    of_run = Text(console.plain(f"run {stored.id}, measured {stored.created_at}"), style="dim")
    rules = (Text(f"{NAMES[n]}: {RULES[n]}", style="dim") for n in NAMES)
    title = Text(console.plain(str(heading(stored, cast(Headline, l2)))), style="bold")
    console.show(Group(title, of_run, console.table(columns, cases), *rules))
    device = stored.environment.device
    if any(isinstance(c.fact, Unknown) and c.fact.why in NEEDS_ROOFS for case in cases for c in case.checks):
        console.err().print(
            f"the roofs of {device.name} are not measured; on that machine, `kernelviz device --device {device.id} "
            "--calibrate` measures them"
        )
    if run is None:
        console.err().print("this is the newest run of this machine; name another one of `kernelviz runs`")
