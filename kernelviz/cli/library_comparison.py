"""`kernelviz library-comparison`: the best own variant of each problem, compared with the libraries and the roof."""

from typing import Annotated

import typer
from rich.text import Text

from kernelviz import bench as use_cases
from kernelviz.bench import comparison
from kernelviz.cli import console, options
from kernelviz.text import format_row
from kernelviz.text.library_comparison import HEADINGS, conclusion, markdown


def library_comparison(
    sources: Annotated[
        list[str], typer.Argument(metavar="RUN|FILE…", help="Ids of runs, files with runs, or backup files.")
    ],
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the table in Markdown, as in docs/kernels.md.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Compare the fastest correct own variant (Triton, CUDA or C++) of each problem with the libraries and the roof.

    The libraries are PyTorch eager, torch.compile and Liger. The roof is the measured memory bandwidth for the bytes that the
    problem moves. `kernelviz ladders` is the former name of this command and still works.
    """
    rows = comparison.library_comparison(use_cases.current(), sources)
    if as_json:
        console.print_json(comparison.library_records(rows))
        return
    if as_markdown:
        console.echo(markdown(rows))
        return
    console.show(console.text_table(HEADINGS, (map(Text, format_row(row)) for row in rows), left=3))
    console.err().print(conclusion(rows))
