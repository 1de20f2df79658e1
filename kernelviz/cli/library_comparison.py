"""`kernelviz ladders`: the best variant of one's own against the libraries and the roof, in a terminal."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from kernelviz import bench as use_cases
from kernelviz.bench.library_comparison import ladders as found_in
from kernelviz.bench.library_comparison import records
from kernelviz.cli import console
from kernelviz.metrics import library_comparison


def ladders(
    sources: Annotated[list[str], typer.Argument(metavar="RUN|FILE…", help="ids of runs, documents, or backups")],
    as_markdown: Annotated[bool, typer.Option("--markdown", help="print the table of docs/kernels.md")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON and nothing else on stdout")] = False,
) -> None:
    """Hold the fastest correct own variant of each problem against eager, compile, Liger, and the roof of its bytes."""
    found = found_in(use_cases.current(), sources)
    if as_json:
        console.print_json(records(found))
        return
    if as_markdown:
        typer.echo(library_comparison.markdown(found))
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for number, heading in enumerate(library_comparison.HEADINGS):
        table.add_column(heading, justify="left" if number < 3 else "right", overflow="fold")
    for standing in found:
        table.add_row(*map(Text, library_comparison.words(standing)))
    console.show(table)
    console.err().print(library_comparison.conclusion(found))
