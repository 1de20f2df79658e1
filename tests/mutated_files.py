"""Damaged files of every format through the code of an upload and of `kernelviz import`; then all that was imported is drawn.

    python tests/mutated_files.py [--count 20000] [--seed 1] [--processes 2] [--pages 300] [--each-kind-once] [--only NUMBER]

- Every file (`mutations.py` makes them) is imported, and either its runs are stored as a whole, or it is refused with a reason in
  words and nothing is stored. A backup is restored into a store that already holds a run, and every tenth one again.
- Of each imported file, all runs are drawn without a page: every chart, every table of the terminal, every export (the offline
  page is one of them), `to_frame()` and the other tables in Python, and the card. Exports to JSON and Parquet are read again
  and give the same run. If a process has drawn a run with the same facts before, it does not draw that run again.
- Of so many imported files as `--pages` says, every page is drawn by Streamlit's AppTest with their runs: Bench with one of its
  tabs, Roofline, Compare, History with its two views, and for backups Device, Method and Gallery. They are chosen so that as many
  formats, kinds of damage and damaged fields occur as possible.

A Parquet file is read in a process with limits, as in the product. Starting one takes 0.5 s, so the process is a fork of this
one, and is started as in the product for every 50th file only. A file that takes more than a minute counts as a fault.

With `--each-kind-once`, an imported file is drawn only if its format and damage, or its format and a
damaged part of the document, are new. tests/formats/test_damaged_files.py does so.

A fault is printed with the number of its file; `--only NUMBER` repeats that file alone.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import functools
import gc
import io
import os
import resource
import signal
import sqlite3
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path

_ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(_ROOT), *(str(_ROOT / "tests" / name) for name in ("", "plots"))]

import charts  # noqa: E402
import msgspec  # noqa: E402
import mutations  # noqa: E402
import sample_runs as samples  # noqa: E402
from mutations import Mutated, mutated  # noqa: E402

import kernelviz.bench  # noqa: E402
from kernelviz import formats, plots  # noqa: E402
from kernelviz.api import Report  # noqa: E402
from kernelviz.bench import Bench, backup  # noqa: E402
from kernelviz.cli import main as command  # noqa: E402
from kernelviz.cli.selftest import _row as _selftest_row  # noqa: E402
from kernelviz.core import DocumentError, KernelvizError, Run  # noqa: E402
from kernelviz.formats import document, integrity, limited_process, reading, reading_process  # noqa: E402
from kernelviz.store import Store  # noqa: E402

PROCESS_EVERY = 50
"""Of the Parquet files, every so many is read in a process that is started for it."""
MOST_S = 60
"""A file that takes longer counts as a fault."""
STORE_FILES = 40
"""A store is replaced after so many files, so that pages and commands see many damaged runs at once."""
WHOLE = "whole"
"""The id of a run that is in each store, with which the imported runs are compared."""
COMMANDS = (
    ["runs", "show", "{id}"],
    ["runs", "show", "{id}", "--samples"],
    ["roofline", "{id}"],
    ["compare", WHOLE, "{id}"],
    ["compare", "{id}", WHOLE, "--json"],
    ["library-comparison", "{id}"],
    ["runs", "card", "{id}"],
)
"""The commands that print an imported run."""
OF_STORE = (
    ["runs"],
    ["runs", "--json"],
    ["runs", "--deleted"],
    ["trends"],
    ["trends", "--json"],
    ["tunings"],
    ["tunings", "--json"],
    ["device"],
)
"""The commands that print what a store holds."""


class Fault(Exception):
    """What must not happen to a file."""


@dataclass
class Outcome:
    """What happened to one file. `refusal`: the reason. `faults`: what must not happen."""

    file: Mutated
    ids: tuple[str, ...] = ()
    refusal: str = ""
    runs_drawn: int = 0
    pages: int = 0
    seconds: float = 0.0
    faults: list[str] = field(default_factory=list)


class Installation:
    """A store with one whole run, and the bench over it, as pages and commands get it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = Store.open(folder)
        self.bench = Bench(self.store, (samples.CPU,))
        self.bench.history.add(_whole_run())
        database = next(folder.glob("*.db"))
        self._watch = sqlite3.connect(database)
        kernelviz.bench.current = lambda: self.bench

    def changes(self) -> int:
        """A number that is another one when anybody has written to the database."""
        return int(self._watch.execute("PRAGMA data_version").fetchone()[0])

    def close(self) -> None:
        self._watch.close()
        self.bench.close()

    def import_file(self, file: Mutated) -> Outcome:
        """The file as `kernelviz import` and an upload read it."""
        outcome = Outcome(file)
        path = self.folder / file.name
        path.write_bytes(file.data)
        before = self.changes()
        try:
            if backup.recognised(path):
                restored = self.bench.history.take_in_backup(path)
                outcome.ids = restored.ids
                _expect(sum(restored.lines.values()) > 0 or file.data.count(b"\n") < 4, "a backup of nothing")
                if file.number // len(mutations.FORMATS) % 10 == 0:
                    _expect(
                        self.bench.history.take_in_backup(path) == restored,
                        "a backup that is restored twice gives the same",
                    )
            else:
                runs = self._read(file)
                outcome.ids = self.bench.history.add_all(runs)
                integrity.sealed(file.data)
                self._check_imported(outcome.ids, runs)
        except KernelvizError as error:
            outcome.refusal = str(error)
            _expect(self.changes() == before, "a refused file changed the store")
            _expect(
                len(outcome.refusal.split()) > 2 and "please report" not in outcome.refusal,
                f"no reason: {outcome.refusal[:500]}",
            )
            _expect("Traceback" not in outcome.refusal and "exit code" not in outcome.refusal, outcome.refusal[:500])
        finally:
            path.unlink()
        return outcome

    def _read(self, file: Mutated) -> tuple[Run, ...]:
        """`formats.read`, in a fork where that starts a process."""
        own = file.form == "parquet" and file.number // len(mutations.FORMATS) % PROCESS_EVERY
        return read_in_fork(file.data) if own else formats.read(file.data)

    def _check_imported(self, ids: Sequence[str], runs: Sequence[Run]) -> None:
        _expect(len(ids) == len(runs), f"{len(ids)} of {len(runs)} runs were stored")
        for run_id, run in zip(ids, runs, strict=True):
            stored = self.bench.load(run_id)
            cases, expected = ({r.case.key for r in one.results} for one in (stored, run))
            _expect(cases == expected, f"{len(cases)} of {len(expected)} cases were stored")
            _expect(bool(self.bench.history.summary(run_id).name), "a run without a name")


def _expect(condition: bool, message: str) -> None:
    if not condition:
        raise Fault(message)


@functools.cache
def _whole_run() -> Run:
    return msgspec.structs.replace(document.decode(mutations.documents()[0]), id=WHOLE)


def read_in_fork(data: bytes) -> tuple[Run, ...]:
    """The runs of a file, read with the limits of the product in a fork of this process. Errors: DocumentError."""
    receiver, sender = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(receiver)
        code, answer = b"f", b""
        try:
            signal.alarm(0)
            used_s = int(sum(resource.getrusage(resource.RUSAGE_SELF)[:2]))
            resource.setrlimit(resource.RLIMIT_CPU, (used_s + reading_process.PROCESSOR_S, resource.RLIM_INFINITY))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            limited_process._limits.start_bytes = limited_process._allocated_bytes()
            limited_process.limit_memory(limited_process.MEMORY_FACTOR * formats.MAX_BYTES)
            code, answer = b"r", msgspec.json.encode(reading.read(data, tuple(formats.imports().values())))
        except DocumentError as error:
            code, answer = b"d", msgspec.json.encode((error.reason, error.path))
        except MemoryError:
            code, answer = b"d", msgspec.json.encode(("reading it takes too much memory", "$"))
        except BaseException:
            answer = traceback.format_exc().encode()
        finally:
            with os.fdopen(sender, "wb") as file:
                file.write(code + answer)
            os._exit(0)
    os.close(sender)
    with os.fdopen(receiver, "rb") as file:
        answer = file.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        raise DocumentError(f"reading it ended the process that read it ({signal.Signals(os.WTERMSIG(status)).name})")
    if answer[:1] == b"r":
        return msgspec.json.decode(answer[1:], type=tuple[Run, ...])
    _expect(answer[:1] == b"d", answer[1:].decode())
    reason, path = msgspec.json.decode(answer[1:])
    raise DocumentError(reason, path=path)


# Drawing without pages


def draw(installation: Installation, run: Run) -> None:
    """Everything that is made of a run outside of pages. Errors: Fault for a file that does not read as the same run."""
    for chart in OF_RUNS:
        for figure in charts.drawn(chart, (run,)):
            figure.to_json()
    for form, export in formats.exports().items():
        data = export.encode(run)
        if form in ("json", "parquet"):
            (again,) = reading.read(data, tuple(formats.imports().values()))
            _expect(document.digest(again) == document.digest(run), f"the export to {form} reads as another run")
    report = Report.of(run)
    report.to_frame()
    report.winners()
    report.winners("warm")
    report.samples()
    report._repr_html_()
    repr(report)
    _ = report.failures, report.fastest, report.most_wins
    for one in COMMANDS:
        run_command([part.format(id=run.id) for part in one])


def draw_store(installation: Installation) -> None:
    """What a store holds beside its runs: the charts of inspections and selftests, and the commands that list what is stored."""
    store = installation.store
    for selftest in store.selftests.every():
        plots.marks_by_time(selftest.timeline).to_json()
        for check in selftest.checks:
            _selftest_row(check)
    for inspection in store.inspections.every():
        for errors in inspection.errors:
            plots.share_by_element(errors).to_json()
            plots.elements_by_error(errors).to_json()
        for tensor in inspection.tensors:
            plots.elements_by_value(tensor).to_json()
    for one in OF_STORE:
        run_command(one)


OF_RUNS = tuple(
    chart
    for name, chart in charts.charts().items()
    if name not in ("marks_by_time", "share_by_element", "elements_by_error", "elements_by_value", "reports_by_time")
)
"""Every chart that is drawn of runs."""


def run_command(arguments: Sequence[str]) -> None:
    """A command of the terminal, whose output nobody reads. Errors: Fault for a traceback."""
    err = io.StringIO()
    with contextlib.redirect_stdout(io.TextIOWrapper(_Ignored(), write_through=True)), contextlib.redirect_stderr(err):
        command(list(arguments))
    _expect("Traceback" not in err.getvalue(), f"{' '.join(arguments)}: {err.getvalue()}")


class _Ignored(io.RawIOBase):
    """A stream that nobody reads."""

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        return len(data)  # type: ignore[arg-type]


# Pages

TABS = ("table", "figures", "samples", "failures", "kernels", "inspect", "variants")
VIEWS = ("overview", "parameters", "registers", "configurations", "shapes")
"""Of a tuning on the page Autotune; another run is named as none there."""


def page_queries(file: Mutated, ids: Sequence[str]) -> list[tuple[str, dict[str, str]]]:
    """Page and parameters of each page that is drawn of one file; which tab and which view follow its number."""
    a, b = ids[0], ids[-1]
    turn = file.number // len(mutations.FORMATS)
    views: tuple[dict[str, str], ...] = (
        {}, {"show": "winner"}, {"show": "time", "l2": "warm"}, {"with": b}, {"with": WHOLE}, {"l2": "warm"}, {"show": "rate"},
    )  # fmt: skip
    pages = [
        ("bench", {"run": a, "tab": TABS[turn % len(TABS)]} | views[turn // 2 % len(views)]),
        ("bench", {"run": b, "tab": TABS[(turn + 3) % len(TABS)]} | views[turn % len(views)]),
        ("roofline", {"runs": ",".join(dict.fromkeys(ids[:8]))} | ({"level": "l2"} if turn % 3 == 0 else {})),
        ("compare", {"a": WHOLE, "b": a} if turn % 2 else {"a": a, "b": b if b != a else WHOLE}),
        ("history", {"run": a}),
        ("autotune", {"run": a, "autotune_view": VIEWS[turn % len(VIEWS)]}),
    ]
    if file.form.startswith("backup") or turn % 10 == 0:
        pages += [
            ("history", {"lists": "trends"}),
            ("device", {}),
            ("method", {}),
            ("gallery", {}),
            ("fusion", {}),
            ("libraries", {}),
            ("code", {"run": a}),
            ("ladder", {"run": a}),
        ]
        pages += [
            ("bench", {"run": one, "tab": "inspect", "inspect": "torch_compile"}) for one in dict.fromkeys((a, b))
        ]
    return pages


def draw_pages(file: Mutated, ids: Sequence[str]) -> int:
    """Draw every page with these runs, and return how many were drawn. Errors: Fault for one that raised."""
    from open_page import open_page

    queries = page_queries(file, ids)
    for page, query in queries:
        try:
            open_page(query, page)
        except AssertionError as error:
            raise Fault(f"page {page} {query}: {error}") from None
    return len(queries)


# The run over many files


def examine(
    installation: Installation, seen: set[str], file: Mutated, *, pages: bool, each_kind_once: bool = False
) -> Outcome:
    """Import one file and draw what was imported: without pages, or on every page. `seen`: the facts of each run, and the kind of
    each file, that was drawn before."""
    began_s = time.monotonic()
    outcome = Outcome(file)
    signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(MOST_S)
    try:
        outcome = installation.import_file(file)
        if pages and outcome.ids:
            openable = [i for i in outcome.ids if installation.bench.history.summary(i).deleted_at is None]
            outcome.pages = draw_pages(file, openable or (WHOLE,))
        elif not outcome.refusal and not (each_kind_once and kinds_of(file) <= seen):
            seen |= kinds_of(file)
            for run_id in outcome.ids:
                if installation.bench.history.summary(run_id).deleted_at is not None:
                    installation.bench.history.restore(run_id)
                run = installation.bench.load(run_id)
                facts = document.digest(run) + run.title + run.note + run.status + run.created_at
                if facts not in seen:
                    seen.add(facts)
                    draw(installation, run)
                    outcome.runs_drawn += 1
            if file.form.startswith("backup"):
                draw_store(installation)
    except BaseException as error:
        outcome.faults.append(_describe_fault(error))
    finally:
        signal.alarm(0)
    outcome.seconds = time.monotonic() - began_s
    outcome.file = dataclasses.replace(file, data=b"")  # The number and the seed make it again.
    return outcome


def kinds_of(file: Mutated) -> set[str]:
    """The format and damage of a file, and the parts of the document that were damaged."""
    parts = {".".join(field.split(".")[:2]) for field in file.fields}
    return {f"{file.form}, {file.damage}", *(f"{file.form}, {part}" for part in parts)}


def _too_long(number: int, frame: object) -> None:
    raise Fault(f"it takes more than {MOST_S} s")


def _describe_fault(error: BaseException) -> str:
    if isinstance(error, Fault):
        return f"{error}\n{_end_of_trace(error)}" if "more than" in str(error) else str(error)
    return _end_of_trace(error)


def _end_of_trace(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))[-3000:]


def chunk(seed: int, numbers: Sequence[int], *, pages: bool = False, each_kind_once: bool = False) -> list[Outcome]:
    """The outcome of each of these files, in stores of their own."""
    _prepare()
    outcomes: list[Outcome] = []
    left = list(numbers)
    while left:
        with tempfile.TemporaryDirectory() as folder:
            installation = Installation(Path(folder))
            try:
                for _ in range(min(STORE_FILES, len(left))):
                    outcomes.append(
                        examine(
                            installation, _SEEN, mutated(seed, left.pop(0)), pages=pages, each_kind_once=each_kind_once
                        )
                    )
                    if outcomes[-1].faults:  # What caused it must not be in the store of the next file.
                        break
                else:
                    outcomes[-1].faults += [] if pages else _backup_and_restore(installation)
            finally:
                installation.close()
    return outcomes


def _backup_and_restore(installation: Installation) -> list[str]:
    """A backup of a store of damaged files comes back in a fresh store with all its runs; returns what went wrong."""
    try:
        path = installation.folder / "everything.jsonl.gz"
        written = installation.bench.history.back_up(path)
        fresh = Installation(installation.folder / "fresh")
        try:
            restored = fresh.bench.history.take_in_backup(path)
            _expect(set(restored.ids) == set(written.ids), "a backup of this store does not bring back the same runs")
            _expect(not written.damaged, f"not in the backup: {written.damaged}")
        finally:
            fresh.close()
            kernelviz.bench.current = lambda: installation.bench
    except BaseException as error:
        return [f"the backup of the store after this file: {_describe_fault(error)}"]
    return []


_SEEN: set[str] = set()
"""The facts of every run that this process has drawn."""


@functools.cache
def _prepare() -> None:
    """What each process does once."""
    home = tempfile.mkdtemp()
    os.environ |= {"KERNELVIZ_HOME": home, "KERNELVIZ_RUNTIME_DIR": home, "OMP_NUM_THREADS": "1"}
    os.environ.pop("KERNELVIZ_DATABASE_URL", None)
    from streamlit.components.v2 import manifest_scanner

    # Each AppTest reads the metadata of all installed packages; no file changes them.
    manifest_scanner.scan_component_manifests = functools.cache(manifest_scanner.scan_component_manifests)
    import logging

    import typer.main
    from streamlit import logger

    logger.set_log_level("CRITICAL")
    # AppTest replaces the level of Streamlit's loggers, and each rerun outside of a server is a warning.
    logging.disable(logging.WARNING)
    # Each call of a command describes all commands to the parser again, which takes 15 ms.
    typer.main.get_command = functools.cache(typer.main.get_command)
    gc.freeze()


def choose(imported: Sequence[Outcome], most: int) -> list[int]:
    """The numbers of the files whose pages are drawn: first one of each format, damage and fields, then of each format and
    fields, then the others."""
    chosen: dict[int, None] = {}
    ranks: tuple[Callable[[Mutated], object], ...] = (
        lambda f: (f.form, f.damage),
        lambda f: (f.form, f.fields),
        lambda f: (f.form, f.damage, f.fields),
        lambda f: f.number,
    )
    for rank in ranks:
        seen: set[object] = set()
        for outcome in imported:
            key = rank(outcome.file)
            if key not in seen and len(chosen) < most:
                seen.add(key)
                chosen[outcome.file.number] = None
    return list(chosen)


def run_in_processes(
    seed: int, numbers: Sequence[int], processes: int, *, pages: bool = False, each_kind_once: bool = False
) -> list[Outcome]:
    """The outcomes of all files. A process that dies is a fault of its files."""
    step = STORE_FILES if pages else 5 * STORE_FILES
    parts = [numbers[start : start + step] for start in range(0, len(numbers), step)]
    outcomes: list[Outcome] = []
    began_s = time.monotonic()
    with ProcessPoolExecutor(processes) as pool:
        waiting = {pool.submit(chunk, seed, part, pages=pages, each_kind_once=each_kind_once): part for part in parts}
        for future in as_completed(waiting):
            try:
                outcomes += (done := future.result())
            except Exception as error:
                done = [
                    Outcome(mutated(seed, waiting[future][0]), faults=[f"in {waiting[future]}: {_end_of_trace(error)}"])
                ]
                outcomes += done
            for outcome in done:
                for fault in outcome.faults:
                    _say(f"FAULT seed {seed} number {outcome.file.number} ({outcome.file.form}, {outcome.file.damage},"
                         f" {sorted(outcome.file.fields)}): {fault}")  # fmt: skip
            _say(f"{len(outcomes)} of {len(numbers)} files, {time.monotonic() - began_s:.0f} s")
    return sorted(outcomes, key=lambda o: o.file.number)


def _say(line: str) -> None:
    print(line, flush=True)  # noqa: T201


def _table(outcomes: Sequence[Outcome], paged: Sequence[Outcome]) -> None:
    _say(
        f"{'format':24}{'kinds':>7}{'files':>8}{'imported':>10}{'refused':>9}{'runs drawn':>12}{'on pages':>10}{'pages':>7}{'faults':>8}"  # noqa: E501
    )
    for form in (*mutations.FORMATS, "all"):
        of = [o for o in outcomes if form in (o.file.form, "all")]
        on = [o for o in paged if form in (o.file.form, "all")]
        imported = sum(not o.refusal and not o.faults for o in of)
        refused = sum(bool(o.refusal) for o in of)
        kinds = len({(o.file.form, o.file.damage) for o in of})
        drawn_runs, faults = sum(o.runs_drawn for o in of), sum(len(o.faults) for o in (*of, *on))
        _say(
            f"{form:24}{kinds:7}{len(of):8}{imported:10}{refused:9}{drawn_runs:12}{len(on):10}{sum(o.pages for o in on):7}{faults:8}"  # noqa: E501
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=20_000, help="how many files")
    parser.add_argument("--first", type=int, default=0, help="number of the first file")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--pages", type=int, default=300, help="how many imported files are drawn on every page")
    parser.add_argument(
        "--each-kind-once", action="store_true", help="draw one file of each format and damage, or part"
    )
    parser.add_argument("--only", type=int, help="one file alone, on every page too")
    options = parser.parse_args()
    if options.only is not None:
        (outcome,) = chunk(options.seed, [options.only])
        (on_pages,) = chunk(options.seed, [options.only], pages=True)
        _say(f"{outcome}\n{on_pages}")
        for fault in (*outcome.faults, *on_pages.faults):
            _say(fault)
        return bool(outcome.faults or on_pages.faults)
    began_s = time.monotonic()
    numbers = range(options.first, options.first + options.count)
    outcomes = run_in_processes(options.seed, numbers, options.processes, each_kind_once=options.each_kind_once)
    imported = [o for o in outcomes if o.ids and not o.faults]
    paged = run_in_processes(options.seed, choose(imported, options.pages), options.processes, pages=True)
    _table(outcomes, paged)
    reasons = Counter(o.refusal.partition(":")[2][:40] or o.refusal[:40] for o in outcomes if o.refusal)
    slow = sorted(outcomes, key=lambda o: -o.seconds)[:5]
    _say("slowest: " + ", ".join(f"{o.file.number} ({o.file.form}, {o.file.damage}) {o.seconds:.1f} s" for o in slow))
    _say(f"{len(reasons)} different beginnings of reasons; {time.monotonic() - began_s:.0f} s with seed {options.seed}")
    return any(o.faults for o in (*outcomes, *paged))


if __name__ == "__main__":
    # Streamlit runs a page as the module __main__, so the classes that processes exchange must be those of another module.
    import mutated_files

    sys.exit(mutated_files.main())
