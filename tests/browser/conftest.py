"""Servers on free ports and a Chromium to look at them with."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).parents[2]
CHROMIUM = os.environ.get("KERNELVIZ_CHROMIUM", "/usr/bin/chromium")
ARGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
Serve = Callable[..., str]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if shutil.which(CHROMIUM) is None:
        reason = f"no browser at {CHROMIUM}: install chromium or set KERNELVIZ_CHROMIUM"
        if os.environ.get("KERNELVIZ_REQUIRE_BROWSER") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGS)
        yield found
        found.close()


@pytest.fixture
def page(browser: Browser, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Page]:
    """A fresh browser context: no storage, no cache of another test. A failed test leaves a picture in its tmp_path."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    made = context.new_page()
    made.set_default_timeout(30_000)
    failed_before = request.session.testsfailed
    yield made
    if request.session.testsfailed > failed_before:
        made.screenshot(path=tmp_path / "failed.png")
    context.close()


@contextmanager
def served(script: Path, folder: Path, *, base: str = "", **environment: str) -> Iterator[str]:
    """The address of `streamlit run script` on a free port, with its runs in `folder`; killed at the end."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    env = {
        **os.environ,
        "KERNELVIZ_HOME": str(folder / "home"),
        "KERNELVIZ_RUNTIME_DIR": str(folder / "run"),
        **environment,
    }
    env["PYTHONPATH"] = os.pathsep.join(p for p in (str(ROOT), env.get("PYTHONPATH")) if p)
    command = [
        sys.executable,
        "-m",
        "streamlit",
        "run",
        str(script),
        f"--server.port={port}",
        f"--server.baseUrlPath={base}",
    ]
    log = (folder / "server.log").open("w")
    process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=log, stderr=subprocess.STDOUT)
    url = f"http://127.0.0.1:{port}" + (f"/{base}" if base else "")
    try:
        _wait(f"{url}/api/health", process, folder / "server.log")
        yield url
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
        finally:
            log.close()


def _wait(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            urllib.request.urlopen(url, timeout=5).close()
            return
        except (urllib.error.URLError, OSError):
            if process.poll() is not None or time.monotonic() > deadline:
                pytest.fail(f"the server did not answer:\n{log.read_text()[-3000:]}")
            time.sleep(0.1)


@pytest.fixture(scope="session")
def rehearsed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """rehearsed(stage) is the address of the product's pages over that rehearsal; each is started once."""
    running: dict[str, str] = {}
    open_ones = []

    def serve(stage: str) -> str:
        if stage not in running:
            script = Path(__file__).with_name("rehearsed_app.py")
            made = served(script, tmp_path_factory.mktemp(stage), REHEARSAL=stage)
            running[stage] = made.__enter__()
            open_ones.append(made)
        return running[stage]

    yield serve
    for made in open_ones:
        made.__exit__(None, None, None)


@pytest.fixture(scope="session")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The product itself: app.py, a real worker, this machine's CPU."""
    with served(ROOT / "app.py", tmp_path_factory.mktemp("real")) as url:
        yield url
