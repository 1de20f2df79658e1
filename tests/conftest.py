"""What all tests run under."""

from __future__ import annotations

import functools
import gc
import os
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from _pytest.doctest import DoctestModule

# A test process a core, and each with torch's threads on all of them, spend two thirds of their time waiting for each other's.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# torch.compile builds and loads a library for each vector extension that the processor has, to see that the compiler knows it.
os.environ.setdefault("TORCHINDUCTOR_VEC_ISA_OK", "1")
# Before each timed call on a processor, eight times the last-level cache is read. On a machine that reports 260 MiB, each worker
# began with 2 to 5 s of processor time for these 2 GiB, and each timed call took 0.2 s. No test needs the caches to be empty.
os.environ.setdefault("KERNELVIZ_CPU_CACHE_BYTES", str(2 * 2**20))


@pytest.hookimpl(wrapper=True, optionalhook=True)
def pytest_xdist_auto_num_workers() -> Generator[None, int, int]:
    """Return one test process more than there are cores: browser tests and tests of real runs wait half of their time."""
    cores = yield
    return cores if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ else cores + 1


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Leave out what collecting made from all later searches for garbage: it stays until the process ends."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


_LEFT_OUT = pytest.StashKey[list[str]]()


def _left_out(config: pytest.Config) -> list[str]:
    """The names of the files of kernel tests that are on record (tests/ops/passed_record.py) and not run again. The process that
    starts the others finds them."""
    if _LEFT_OUT not in config.stash:
        sent = getattr(config, "workerinput", None)
        if sent is not None:
            config.stash[_LEFT_OUT] = sent["left_out"]
        else:
            import passed_record

            config.stash[_LEFT_OUT] = passed_record.names_of_left_out(config)
    return config.stash[_LEFT_OUT]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    return True if collection_path.name in _left_out(config) else None


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    node.workerinput["left_out"] = _left_out(node.config)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Tell the process that starts the others which of our files the tests loaded (tests/ops/passed_record.py asks)."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        root = Path(__file__).parents[1]
        places = [Path(file) for one in list(sys.modules.values()) if (file := getattr(one, "__file__", None))]
        own = [at for at in places if at.is_relative_to(root / "kernelviz") or at.is_relative_to(root / "tests")]
        output["loaded"] = [str(at.relative_to(root)) for at in own]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    gone = _left_out(config)
    if gone:
        terminalreporter.write_line(
            f"{len(gone)} files of tests of kernels were left out, because they passed with this very code before "
            "(tests/ops/passed_record.py); name a path to run its tests"
        )


LONGEST_GROUPS = (
    "browser-1",
    "browser-2",
    "compile-1",
    "compile-0",
    "interpreter-1",
    "device",
    "inductor",
    "matmul-tiles",
)
"""Groups (`xdist_group`) that one test process works on for a minute or longer, the longest first."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with the longest groups and end with tests of no group, so that no process still has a long group at the end.

    By itself pytest-xdist begins with the groups of the most tests, which are not those that take longest.
    """
    # The GPU suite has an order of its own (tests/gpu/conftest.py).
    if config.getoption("--part", default=None) is None:
        items.sort(key=_rank)


def _rank(item: pytest.Item) -> int:
    marker = item.get_closest_marker("xdist_group")
    if marker is None:
        return len(LONGEST_GROUPS) + 1
    return LONGEST_GROUPS.index(marker.args[0]) if marker.args[0] in LONGEST_GROUPS else len(LONGEST_GROUPS)


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Look for examples only in those files of this folder that have one: else each module is imported under a second name."""
    found = yield
    return found if b">>>" in file_path.read_bytes() else [f for f in found if not isinstance(f, DoctestModule)]


@pytest.fixture(scope="session", autouse=True)
def components_are_looked_for_once() -> None:
    """Let every AppTest after the first one use the list of installed Streamlit components that the first one made.

    Each AppTest reads the metadata of all installed packages, which is a third of what most pages take; no test changes them.
    """
    if "streamlit.testing.v1" in sys.modules:
        from streamlit.components.v2 import manifest_scanner

        manifest_scanner.scan_component_manifests = functools.cache(manifest_scanner.scan_component_manifests)
