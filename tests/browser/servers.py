"""The product's server as a process of its own, on a free port."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@contextmanager
def served(
    script: Path, folder: Path, *, base: str = "", health: str = "api/health", **environment: str
) -> Iterator[str]:
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
        "--global.developmentMode=false",  # guessed from where Streamlit is installed
    ]
    log = (folder / "server.log").open("w")
    process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=log, stderr=subprocess.STDOUT)
    url = f"http://127.0.0.1:{port}" + (f"/{base}" if base else "")
    try:
        _wait(f"{url}/{health}", process, folder / "server.log")
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
