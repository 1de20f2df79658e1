"""`kernelviz code`: what compilers made of a case: list the artifacts, print or write one, and compare two kernels."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, cast, get_args

import typer

from kernelviz import bench as use_cases
from kernelviz.bench import run_files
from kernelviz.bench.code import CaseArtifact, Kind, record
from kernelviz.bench.code_page import code_document
from kernelviz.bench.compared_code import CodeSide, ComparedCode, compare_code, compared_record, describe_compared
from kernelviz.bench.snapshots import at_sizes
from kernelviz.cli import console, options
from kernelviz.core import BadField, Run, check_name, units
from kernelviz.core.code_facts import CaseFacts
from kernelviz.core.code_facts import record as facts_record
from kernelviz.core.code_listing import ListingKind
from kernelviz.metrics.line_diff import unified
from kernelviz.tables.code_facts import CODE_FACTS, kernel_rows
from kernelviz.tables.column import Column, View, select_with_sizes
from kernelviz.text import format_problem
from kernelviz.text.code_facts import describe_cases, describe_missing_by_variant

KINDS = (*get_args(Kind), "main-loop")
_CHARACTERS = 12
"""Characters of a digest in the list."""


def code(
    run: Annotated[str, typer.Argument(metavar="RUN|FILE", help="Id of a run, or a document that holds one.")],
    variant: Annotated[
        str | None,
        typer.Argument(metavar="VARIANT", help="Name of the variant. Only with --facts it can be left out."),
    ] = None,
    problem: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="Only this problem, as the list names it: 'softmax bf16 m=64 n=64'."),
    ] = None,
    size: options.Sizes = None,
    kind: Annotated[
        str | None,
        typer.Option(
            metavar="KIND",
            help=f"Print this artifact instead of the list, or compare it: {', '.join(KINDS)}.",
        ),
    ] = None,
    kernel: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only this kernel, where a case has several.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Write the bytes of the one artifact to this file."),
    ] = None,
    facts: Annotated[
        bool,
        typer.Option(
            "--facts",
            help="Show techniques, registers, spills, occupancy, waves and instructions of the kernels, read from the cubins: "
            "all details of one variant, or a table of all variants.",
        ),
    ] = False,
    diff: Annotated[
        str | None,
        typer.Option(
            "--diff",
            metavar="VARIANT",
            help="Compare with this variant (B), which may be the same one at other sizes or in another run.",
        ),
    ] = None,
    diff_run: Annotated[
        str | None, typer.Option(metavar="RUN|FILE", help="The run of B, by default the same run.")
    ] = None,
    diff_problem: Annotated[
        str | None, typer.Option(metavar="KEY", help="The problem of B, by default that of A.")
    ] = None,
    as_compiled: Annotated[
        bool,
        typer.Option(
            "--as-compiled",
            help="Compare compiled code as it is. By default registers are numbered anew within each instruction, and "
            "addresses, labels and locations are left out.",
        ),
    ] = False,
    html: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write one page that opens offline, with all texts, facts and, with --diff, the difference.",
        ),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Show the code that compilers made for a variant of a run: source, Triton's languages, PTX, SASS and cubin.

    With --diff it compares two kernels: the measured difference, what changed in the machine code, and the lines that differ.
    Without --kind it lists the artifacts. Code of a document is data: its digests are verified, and nothing of it is run. SASS
    and facts are made of a cubin by nvdisasm, when they are asked for. Characters that control a terminal are not printed;
    --output writes the exact bytes.
    """
    if kind is not None:
        check_name("kind", kind, KINDS)
    if kind is None and output is not None:
        raise BadField("--output", output, f"name what to write: --kind {'|'.join(KINDS)}")
    if diff is None:
        _refuse_options_of_diff(diff_run, diff_problem, as_compiled=as_compiled)
    elif output is not None or kind == "cubin":
        raise BadField("--diff", diff, "a difference is printed as text; leave out --output and --kind cubin")
    if html is not None and (kind is not None or output is not None or facts or as_json or as_compiled):
        raise BadField(
            "--html", html, "the page has every text; leave out --kind, --output, --facts, --json and --as-compiled"
        )
    if facts and diff is not None:
        raise BadField("--facts", "yes", "they are of one side; leave out --diff")
    if kind is not None and as_json and diff is None:
        raise BadField("--json", "yes", "it prints the list; leave out --kind")
    if facts and kind is not None:
        raise BadField("--facts", "yes", "they are read from the cubin; leave out --kind")
    if problem is not None and size:
        raise BadField("--size", ", ".join(size), "--problem names the sizes; leave one of them out")
    if variant is None and not facts:
        raise BadField("VARIANT", "", "name a variant, or add --facts for a table of all variants")
    bench = use_cases.current()
    stored = _opened(bench, run)
    problems = at_sizes(stored, options.parse_sizes(size)) if size else None
    if facts:
        cases = bench.history.code_facts.of_cases(stored, variant, problem=problem, problems=problems, kernel=kernel)
        _show_facts(cases, details=variant is not None, as_json=as_json)
        return
    assert variant is not None
    if html is not None or diff is not None or kind == "main-loop":
        first = CodeSide(stored, variant, problem or _one_problem(stored, problems), kernel)
        second = None
        if diff is not None:
            run_b = stored if diff_run is None else _opened(bench, diff_run)
            second = CodeSide(run_b, diff, diff_problem or first.problem)
        if html is not None:
            with console.writable("--html", html):
                html.write_bytes(code_document(bench, first, second))
        elif second is not None:
            compared_kind = cast(ListingKind, kind or "sass")
            compared = compare_code(bench, first, second, compared_kind, normalise=False if as_compiled else None)
            _show_difference(compared, as_json=as_json)
        else:
            _print_listing(bench, first, output)
        return
    artifacts = bench.history.code.of_case(
        stored, variant, problem=problem, problems=problems, kind=cast(Kind | None, kind), kernel=kernel
    )
    if kind is None:
        _list(artifacts, as_json=as_json)
        return
    _print(bench.history.code.of_one_problem(artifacts), kind, output)


def _list(artifacts: Sequence[CaseArtifact], *, as_json: bool) -> None:
    """The artifacts: as JSON one record for each, as a table one row for those of several problems that are equal."""
    if as_json or not artifacts:
        console.show_rows(_COLUMNS, artifacts, record, as_json=as_json, nothing="no code was captured")
        return
    equal: dict[tuple[object, ...], list[CaseArtifact]] = {}
    for one in artifacts:
        equal.setdefault((one.kernel, one.kind, one.name, one.digest, one.code.compiler, one.code.arch), []).append(one)
    problems = {id(alike[0]): _problems(alike) for alike in equal.values()}
    first: Column[CaseArtifact] = Column("", "Problem", "", units.TEXT, lambda a: problems[id(a)])
    console.show(console.table((first, *_COLUMNS[1:]), [alike[0] for alike in equal.values()]))


def _problems(alike: Sequence[CaseArtifact]) -> str:
    """The problem, or how many problems share the artifact."""
    return str(format_problem(alike[0].problem)) if len(alike) == 1 else f"{len(alike)} problems, the same code"


def _opened(bench: use_cases.Bench, run: str) -> Run:
    return run_files.read_one(Path(run)) if Path(run).is_file() else bench.load(run)


def _refuse_options_of_diff(run: str | None, problem: str | None, *, as_compiled: bool) -> None:
    for option, value in (("--diff-run", run), ("--diff-problem", problem), ("--as-compiled", as_compiled or None)):
        if value is not None:
            raise BadField(option, str(value), "it describes the other side; add --diff VARIANT")


def _one_problem(run: Run, problems: Sequence[str] | None) -> str:
    """The only problem of the run, or of the chosen sizes. Errors: BadField that names them if there are several."""
    keys = problems if problems is not None else [problem.key for problem in run.plan.problems]
    if len(keys) != 1:
        raise BadField("--problem", f"{len(keys)} problems", f"name one: {'; '.join(keys)}")
    return keys[0]


def _print_listing(bench: use_cases.Bench, side: CodeSide, output: Path | None) -> None:
    code = bench.history.code_listings.of_kernel(side.run, side.variant, side.problem, side.kernel, ("main-loop",))
    text = code.text_of("main-loop")
    if output is None:
        console.print_code(text)
        return
    with console.writable("--output", output):
        output.write_text(text)


def _show_difference(compared: ComparedCode, *, as_json: bool) -> None:
    if as_json:
        console.print_json(compared_record(compared))
        return
    for line in describe_compared(compared):
        console.echo(str(line), to_stderr=True)
    sides = [f"{side.run_id} {side.variant} {side.problem.key} {side.kernel}" for side in (compared.a, compared.b)]
    text = "".join(f"{line}\n" for line in unified(compared.diff.diff, sides[0], sides[1]))
    console.print_code(text)


def _show_facts(cases: Sequence[CaseFacts], *, details: bool, as_json: bool) -> None:
    if as_json:
        console.print_json([kernel for case in cases for kernel in facts_record(case)])
        return
    rows = kernel_rows(cases)
    if details:
        for line in describe_cases(cases):
            console.echo(str(line))
    elif rows:
        problems = [row.result.problem for row in rows]
        console.show(console.table(select_with_sizes(CODE_FACTS, rows, View.TERMINAL, problems), rows))
    for line in describe_missing_by_variant(cases):
        console.echo(str(line), to_stderr=True)


def _print(listed: Sequence[CaseArtifact], kind: str, output: Path | None) -> None:
    # Kernels of one CUDA C++ file share source, PTX and cubin.
    artifacts = list({(a.digest, a.name): a for a in reversed(listed)}.values())[::-1]
    if len(artifacts) > 1 and (output is not None or kind == "cubin"):
        kernels = list(dict.fromkeys(a.kernel for a in artifacts))
        if len(kernels) > 1:
            raise BadField("--kernel", f"{len(kernels)} kernels", f"name one: {', '.join(kernels)}")
    if output is not None:
        with console.writable("--output", output):
            output.write_bytes(_together(artifacts) if len(artifacts) > 1 else artifacts[0].content())
    elif kind == "cubin":
        if sys.stdout.isatty():
            raise BadField("--output", "", "a cubin is binary, which a terminal cannot show; name a file")
        console.write(artifacts[0].content())
    else:
        console.print_code(_together(artifacts).decode("utf-8", "replace"))


def _together(artifacts: Sequence[CaseArtifact]) -> bytes:
    """The contents one after another; where there are several, each after a comment with its kernel and its file."""
    if len(artifacts) == 1:
        return artifacts[0].content()
    parts = []
    for artifact in artifacts:
        heading = " ".join(filter(None, (artifact.kernel, artifact.name)))
        parts.append(f"// {heading}\n".encode() + artifact.content().rstrip(b"\n") + b"\n")
    return b"\n".join(parts)


_COLUMNS: tuple[Column[CaseArtifact], ...] = (
    Column("", "Problem", "", units.TEXT, lambda a: format_problem(a.problem)),
    Column("", "Kernel", "", units.TEXT, lambda a: a.kernel),
    Column("", "Kind", "", units.TEXT, lambda a: a.kind),
    Column("", "File", "", units.TEXT, lambda a: a.name or None),
    Column("", "Compiler", "", units.TEXT, lambda a: " ".join(filter(None, (a.code.compiler, a.code.version)))),
    Column("", "For", "", units.TEXT, lambda a: a.code.arch),
    Column("", "Size", "", units.BYTES, lambda a: a.size_bytes),
    Column("", "Here", "", units.TEXT, lambda a: "yes" if a.is_here else "no"),
    Column("", "SHA-256", "", units.TEXT, lambda a: a.digest[:_CHARACTERS]),
)
