"""Fifty sessions at once: each opens the first page, starts a run and follows it to its end. Run by hand on an idle machine.

    python tests/ui/many_sessions.py [--sessions 50] [--opens RUN] [--just-started]

One session opens a recorded run before, unless `--just-started` is given. Prints the first page's time of the slowest and the
fastest session, the waits from the click on Run to the end of the run, how many runs finished, and the server's processor time.
`--opens`: the sessions open this recorded run and start none.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from urllib.parse import parse_qs

import psutil

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "browser")]

from servers import ROOT, served  # noqa: E402
from stream_client import StreamClient  # noqa: E402

GALLERY_RUN = "h200-add"
PLAN = {"op": "add", "variants": "torch_eager", "device": "cpu", "budget": "0.25"}


@dataclass(frozen=True, slots=True)
class Session:
    """The seconds from the common start to the whole first page, and from the click on Run to the end of the run."""

    page_s: float
    wait_s: float | None
    finished: bool


def session(url: str, number: int, start: threading.Barrier, opens: str | None) -> Session:
    """One session. The sizes differ, so that no run is another's."""
    start.wait()
    begun_s = time.perf_counter()
    client = StreamClient(url)
    try:
        if opens is not None:
            client.open(run=opens)
            return Session(time.perf_counter() - begun_s, None, True)
        client.open(**PLAN, n=str(2**16 + 64 * number))
        page_s = time.perf_counter() - begun_s
        clicked_s = time.perf_counter()
        client.press("run")
        run_id = parse_qs(client.query)["run"][0]
        return Session(page_s, *_followed(url, run_id, clicked_s))
    finally:
        client.close()


def _followed(url: str, run_id: str, clicked_s: float) -> tuple[float, bool]:
    """Seconds until the run ended, by the server's events, and whether it finished."""
    after = 0
    while time.perf_counter() - clicked_s < 300:
        request = urllib.request.Request(f"{url}/api/runs/{run_id}/events", headers={"Last-Event-ID": str(after)})
        try:
            with urllib.request.urlopen(request, timeout=120) as events:
                for line in events:
                    if line.startswith(b"id:"):
                        after = int(line[3:])
                    if line.startswith(b"data:") and b'"kind": "ended"' in line:
                        return time.perf_counter() - clicked_s, b'"status": "finished"' in line
        except urllib.error.HTTPError as error:
            if error.code != 503:  # too many streams; a page asks again later, too
                raise
        time.sleep(0.5)
    return time.perf_counter() - clicked_s, False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=50)
    parser.add_argument("--opens", metavar="RUN")
    parser.add_argument("--just-started", action="store_true", help="no page was opened before")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, served(ROOT / "app.py", Path(folder)) as url:
        port = int(url.rpartition(":")[2])
        server = next(
            p for p in psutil.process_iter(["cmdline"]) if f"--server.port={port}" in (p.info["cmdline"] or ())
        )
        if not asked.just_started:
            session(url, 0, threading.Barrier(1), GALLERY_RUN)
        before = server.cpu_times()
        start = threading.Barrier(asked.sessions)
        with ThreadPoolExecutor(asked.sessions) as pool:
            sessions = list(pool.map(lambda n: session(url, n, start, asked.opens), range(asked.sessions)))
        after = server.cpu_times()
        pages = sorted(s.page_s for s in sessions)
        waits = sorted(s.wait_s for s in sessions if s.wait_s is not None)
        print(f"load average {os.getloadavg()[0]:.1f}")  # noqa: T201
        print(f"first page: {pages[0]:.1f} to {pages[-1]:.1f} s, median {median(pages):.1f} s")  # noqa: T201
        if waits:
            print(f"from Run to the end: {waits[0]:.1f} to {waits[-1]:.1f} s, median {median(waits):.1f} s")  # noqa: T201
        print(f"{sum(s.finished for s in sessions)} of {len(sessions)} finished")  # noqa: T201
        print(f"server: {after.user + after.system - before.user - before.system:.1f} s of processor time")  # noqa: T201


if __name__ == "__main__":
    main()
