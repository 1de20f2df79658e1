"""`kernelviz recordings`: the recorded runs and the code that are too large for the package."""

from typing import Annotated

import msgspec
import typer

from kernelviz.bench import further_recordings as use_case
from kernelviz.cli import console, options
from kernelviz.text.recordings import describe_no_folder, describe_recordings

app = typer.Typer(
    help="Say whether the recorded runs and the code that are too large for the package are here; fetch or remove them."
)


@app.callback(invoke_without_command=True)
def recordings(context: typer.Context, as_json: options.Json = False) -> None:
    """Say whether the recorded runs and the code that are too large for the package are here."""
    if context.invoked_subcommand is not None:
        return
    state = use_case.further_recordings()
    if as_json:
        folder = None if state.folder is None else str(state.folder)
        archive = None if state.archive is None else msgspec.to_builtins(state.archive)
        no_folder = None if state.no_folder is None else str(state.no_folder)
        console.print_json({"archive": archive, "folder": folder, "fetched": state.fetched, "no_folder": no_folder})
        return
    console.out().print(f"{describe_recordings(state.archive, state.folder)}", soft_wrap=True)
    if state.no_folder is not None:
        console.warn(f"{describe_no_folder(state.no_folder)}")


@app.command()
def fetch(
    source: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="The file, or its address. Default: the address that belongs to this version.",
        ),
    ] = None,
) -> None:
    """Fetch the file of this version, compare its digest with that of the package, and unpack it.

    It goes into the folder `recordings` of KERNELVIZ_HOME. Nothing is sent but the request. A server that runs already shows what
    was fetched when it is started again.
    """
    before = use_case.further_recordings()
    state = use_case.fetch(source)
    console.err().print("fetched" if before.missing is not None else "nothing was fetched: the recordings are here")
    console.out().print(f"{describe_recordings(state.archive, state.folder)}", soft_wrap=True)


@app.command()
def remove() -> None:
    """Remove what was fetched. The recorded runs of the package stay."""
    console.err().print("removed" if use_case.remove() else "nothing was removed: no recordings were fetched")
