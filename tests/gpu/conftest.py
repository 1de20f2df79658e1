"""What the tests of the whole product on a GPU share; and the parts of the suite: selection, time limit, report."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from part_report import PartReport, Told, environment, name_of, told_with
from parts import PARTS, part_of, seconds_before, stretches

from kernelviz.bench import Bench, current

HERE = Path(__file__).parent
REPORTS = "KERNELVIZ_GPU_REPORTS"
"""Names the folder of the parts' reports; without it ``gpu-reports`` in the current folder."""
ON_RECORD = pytest.StashKey[int]()
"""How many tests this process left out."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("gpu suite")
    group.addoption("--part", choices=tuple(PARTS), help="run one part of the GPU suite and write its report")
    group.addoption("--whole-sweep", action="store_true", help="one_click: all sizes of each sweep, not only the last")
    group.addoption("--all", action="store_true", help="kernels, one_click: also what passed with this code before")
    group.addoption("--list-parts", action="store_true", help="print every GPU test by part as JSON, and run none")


def _asked(config: pytest.Config) -> bool:
    """Whether a part is run or the parts are listed. Without either, GPU tests are chosen by ``-m gpu`` as before."""
    return config.getoption("--part", default=None) is not None or bool(config.getoption("--list-parts", default=False))


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """A part chooses its number of processes, before xdist reads it; a number on the command line has the last word."""
    name = config.getoption("--part", default=None)
    if _asked(config):
        if config.getoption("numprocesses", default=None) in ("auto", "logical"):
            config.option.numprocesses = PARTS[name].processes if name else 0
        # A process that is ready takes tests from the others. Tests of such a part share nothing but the GPU.
        config.option.dist = "worksteal" if config.option.numprocesses else "no"


def pytest_configure(config: pytest.Config) -> None:
    """In every process: choose the GPU tests. In the one that was started: keep what the tests of a part tell."""
    if _asked(config):
        config.option.markexpr = "gpu"  # in place of the usual "not gpu"
    name = config.getoption("--part", default=None)
    if name is None or hasattr(config, "workerinput") or config.option.collectonly:
        return
    folder = Path(os.environ.get(REPORTS) or "gpu-reports").resolve()
    config.pluginmanager.register(PartRun(name, folder), "kernelviz-gpu-part")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With --part, skip the files that have no test of that part: to import them and to make their tests takes seconds.

    A file has one if its text has part("NAME"), in just these characters (tests/test_gpu_parts.py asks whether all have).
    """
    name = config.getoption("--part", default=None)
    if name is None or collection_path.suffix != ".py" or HERE not in collection_path.parents:
        return None
    is_of_part = collection_path.name.startswith("test_") and f'part("{name}")' in collection_path.read_text()
    return None if is_of_part else True


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    mine = {i: part_of(i) for i in items if HERE in i.path.parents and i.get_closest_marker("gpu") is not None}
    if config.getoption("--list-parts", default=False):
        by_part = {name: [i.nodeid for i, part in mine.items() if part == name] for name in PARTS}
        print(json.dumps(by_part))  # noqa: T201
        items.clear()
        return
    wanted = config.getoption("--part", default=None)
    if wanted is None:
        # The whole suite in one command: what judges no times must not run beside what does.
        for item in mine:
            item.add_marker(pytest.mark.xdist_group("gpu"))
    else:
        config.hook.pytest_deselected(items=[i for i in items if mine.get(i) != wanted])
        chosen = [i for i in items if mine.get(i) == wanted]
        if wanted in ("kernels", "one_click"):
            import on_record  # it reads the catalogue

            kept = on_record.chosen(wanted, chosen, config)
            config.hook.pytest_deselected(items=[i for i in chosen if i not in set(kept)])
            config.stash[ON_RECORD], chosen = len(chosen) - len(kept), kept
        count = int(getattr(config, "workerinput", {}).get("workercount", 1))
        items[:] = stretches(chosen, seconds_before(wanted), count) if count > 1 else chosen


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A process of xdist tells the one that started it how many tests it left out."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["on_record"] = session.config.stash.get(ON_RECORD, 0)


def _words(report: pytest.TestReport) -> str:
    """Why it failed or was skipped, without the path of this checkout."""
    if report.passed:
        return ""
    words = str(report.longrepr[2]) if isinstance(report.longrepr, tuple) else report.longreprtext
    return words.replace(f"{HERE.parents[1]}/", "")[-2000:]


class PartRun:
    """Collects what the tests of a part told, ends the part at its limit, and writes its report, also when it was interrupted."""

    def __init__(self, name: str, folder: Path) -> None:
        self._name, self._folder = name, folder
        self._tests: dict[str, Told] = {}
        self._began_s = time.time()
        self._over = False
        self._on_record = 0
        self._work = tempfile.TemporaryDirectory(prefix="kernelviz-gpu-part-")
        # Tests, also those in processes of xdist, leave kernels' entries and figures in files; the report takes them over.
        os.environ["KERNELVIZ_GPU_REPORT"] = f"{self._work.name}/kernels.json"
        os.environ["KERNELVIZ_GPU_FIGURES"] = f"{self._work.name}/figures"

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        self._session = session

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        name = name_of(report.nodeid)
        told = told_with(self._tests.get(name), report, _words(report))
        self._tests[name] = replace(told, key=str(dict(report.user_properties).get("key", "")))
        limit_s = PARTS[self._name].limit_s
        # xdist's controller collects no tests itself: there, some may be left.
        left = self._session.testscollected != len(self._tests)
        if left and not self._over and time.time() - self._began_s > limit_s:
            self._over = True
            self._session.shouldstop = f"part {self._name} took longer than its limit of {limit_s:.0f} s"

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        self._on_record = max(self._on_record, getattr(node, "workeroutput", {}).get("on_record", 0))

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        on_record = session.config.stash.get(ON_RECORD, self._on_record)
        if on_record and exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
            session.exitstatus = exitstatus = pytest.ExitCode.OK
        work = Path(self._work.name)
        made = PartReport.of(
            self._name,
            began_s=self._began_s,
            seconds=time.time() - self._began_s,
            ended=int(exitstatus) in (0, 1) and not self._over,
            environment=environment(),
            tests=self._tests,
            work=work,
            on_record=on_record,
        )
        file = made.write(self._folder)
        documents = work / "figures" / "documents"
        if documents.is_dir():
            shutil.copytree(documents, file.with_name(f"{file.stem}-documents"))
        self._work.cleanup()
        print(f"\n{made.summary()}\nreport: {file}")  # noqa: T201


@pytest.fixture(scope="session")
def home_with_roofs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a store that modules of a part share, so that a later one finds the roofs of an earlier one."""
    return tmp_path_factory.mktemp("home-with-roofs")


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Bench]:
    """The product's own bench. Its store is the module's own, unless the module says ``SHARES_ROOFS = True``."""
    shares_roofs = getattr(request.module, "SHARES_ROOFS", False)
    home = request.getfixturevalue("home_with_roofs") if shares_roofs else tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("KERNELVIZ_HOME", str(home))
        if "PYTEST_XDIST_WORKER" in os.environ and request.config.getoption("--part", default=None):
            # A lock of its own: the processes of a part that judges no times do not wait for each other.
            patched.setenv("KERNELVIZ_RUNTIME_DIR", str(tmp_path_factory.mktemp("locks")))
        made = current()
        yield made
        made.close()
