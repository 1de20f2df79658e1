"""The command line: which commands there are, and how each kind of error is printed."""

import errno
import sys
from collections.abc import Callable, Sequence
from typing import Annotated

import typer

import kernelviz
from kernelviz import bench as use_cases
from kernelviz.cli import claims, console, history, recordings, tune, workloads
from kernelviz.cli.best import best
from kernelviz.cli.checklist import checklist
from kernelviz.cli.code import code
from kernelviz.cli.compare import compare
from kernelviz.cli.compile import compile_op
from kernelviz.cli.counters import counters
from kernelviz.cli.device import device
from kernelviz.cli.fusion import fusion
from kernelviz.cli.gallery import gallery
from kernelviz.cli.inspect import inspect
from kernelviz.cli.ladder import ladder
from kernelviz.cli.launch import launch
from kernelviz.cli.library_comparison import library_comparison
from kernelviz.cli.model import model
from kernelviz.cli.ops import ops
from kernelviz.cli.record import record
from kernelviz.cli.regress import regress
from kernelviz.cli.roofline import roofline
from kernelviz.cli.run import run
from kernelviz.cli.selftest import selftest
from kernelviz.cli.serve import serve
from kernelviz.cli.trends import trends
from kernelviz.core import KernelvizError
from kernelviz.core.errors import one_line
from kernelviz.text.notices import format_notice

app = typer.Typer(
    name="kernelviz",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",  # wraps paragraphs to the width of the terminal
    context_settings={"help_option_names": ["-h", "--help"]},
    help="""Measure variants of GPU kernels, check their results, and compare their speed.

    An op is a computation, for example softmax. A variant is one implementation of an op. A case is one variant at one set of
    sizes in one number format. A run is a set of cases that were measured together. A roof is the highest rate that was
    measured on the device: results are shown as a share of it.

    To begin: `kernelviz ops`, then `kernelviz run softmax`, or `kernelviz serve` for the same in a browser.""",
)

MEASURE, RESULTS, MACHINE = "Measure", "Look at results", "This machine"

for group, group_name, panel in (
    (tune.app, "tunings", MEASURE),
    (workloads.app, "workloads", MEASURE),
    (history.app, "runs", RESULTS),
    (claims.app, "claims", RESULTS),
    (recordings.app, "recordings", RESULTS),
):
    app.add_typer(group, name=group_name, rich_help_panel=panel)
COMMANDS: dict[str, dict[str, Callable[..., int | None]]] = {
    MEASURE: {
        "ops": ops,
        "run": run,
        "record": record,
        "inspect": inspect,
        "counters": counters,
        "launch": launch,
        "compile": compile_op,
        "tune": tune.tune,
    },
    RESULTS: {
        "gallery": gallery,
        "best": best,
        "import": history.import_files,
        "export": history.export,
        "checklist": checklist,
        "compare": compare,
        "code": code,
        "ladder": ladder,
        "regress": regress,
        "trends": trends,
        "roofline": roofline,
        "fusion": fusion,
        "model": model,
        "library-comparison": library_comparison,
    },
    MACHINE: {"device": device, "selftest": selftest, "serve": serve},
}
for panel, commands in COMMANDS.items():
    for name, command in commands.items():
        app.command(name, rich_help_panel=panel)(command)
app.command("ladders", hidden=True)(library_comparison)  # the former name


@app.callback(invoke_without_command=True)
def _options(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)] = False,
) -> None:
    if version:
        console.out().print(f"kernelviz {kernelviz.__version__}")
        raise typer.Exit


def invoke(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code. Bad input gives one line on stderr, never a traceback."""
    console.prepare_streams()
    try:
        code = app(args=None if arguments is None else list(arguments), prog_name="kernelviz", standalone_mode=False)
        sys.stdout.flush()
        bench = use_cases.opened()
        for notice in () if bench is None else bench.history.unwritable:
            console.warn(f"{format_notice(notice)}")
        return int(code or 0)
    except KernelvizError as error:
        return console.fail(f"{error}")
    except typer.Abort:
        return console.fail("aborted")
    except BrokenPipeError:
        # The reader of our output has closed the pipe (`| head`). Exit without a second error.
        console.discard_stdout()
        return 141
    except OSError as error:
        path = f"{error.filename}: " if error.filename else ""
        if error.errno in _WRITE_ERRORS:
            console.discard_stdout()
            return console.fail(f"cannot write: {path}{error.strerror}")
        return console.fail(f"{path}{error.strerror}" if error.strerror else one_line(error))
    except typer.TyperException as error:
        # An empty message means that no command was given and that the help has been printed.
        return console.fail(error.format_message()) if error.format_message() else 2


_WRITE_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF, errno.EROFS)
"""Errors of a stream or a file that accepts no more data."""
