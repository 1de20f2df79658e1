"""`kernelviz library-comparison`: own variants and the chosen one of each problem, compared with the libraries and the roof."""

from typing import Annotated

import typer
from rich.text import Text

from kernelviz import bench as use_cases
from kernelviz.bench import library_comparison as use_case
from kernelviz.cli import console, options
from kernelviz.metrics.library_comparison import AutoSummary
from kernelviz.text import format_row
from kernelviz.text.library_comparison import HEADINGS, conclusion, describe_auto, markdown, several_cards


def library_comparison(
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RUN|FILE…",
            help="Ids of runs, files with runs, or backup files. Default: the newest runs here, and those that come with "
            "kernelviz.",
        ),
    ] = None,
    card: Annotated[str | None, typer.Option(metavar="NAME", help="Only this card, for example 'NVIDIA H200'.")] = None,
    family: Annotated[str | None, typer.Option(metavar="NAME", help="Only ops of this family.")] = None,
    op: Annotated[str | None, typer.Option(metavar="NAME", help="Only this op.")] = None,
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the table in Markdown, as in docs/kernels.md.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Compare the fastest correct own variant (Triton, CUDA or C++) of each problem with the libraries and the roof,
    misses first.

    The libraries are PyTorch eager, torch.compile, Liger and those of single ops. The roof is the measured memory
    bandwidth for the bytes that the problem moves. `auto` is the variant that the op's rule chooses (`kernelviz best`).
    `kernelviz ladders` is the former name of this command and still works.
    """
    rows = use_case.library_comparison(use_cases.current(), sources or (), card=card, family=family, op=op)
    if as_json:
        console.print_json(use_case.library_records(rows))
        return
    if as_markdown:
        console.echo(markdown(rows))
        return
    named = several_cards(rows)
    console.show(console.text_table(HEADINGS, (map(Text, format_row(row, card=named)) for row in rows), left=3))
    console.err().print(conclusion(rows))
    console.err().print(describe_auto(AutoSummary.of(rows)))
