"""A tuning through the page Autotune of a real server, by Streamlit's own protocol: started, followed, cancelled, resumed.

    python tests/gpu/follow_tuning.py -o OUT [--configurations 500] [--device cuda:0] [--op matmul --variant triton_tuned
        --size m=4096 --size n=4096 --size k=4096] [--with FILE]

Writes two files into OUT, from which `tests/replayed_tuning.py` plays the tuning again on a machine without the device:
`events.jsonl.gz`, a line for each event that the server sent (seconds since the start, and its data), and `run.json.gz`, the
run at its end. Prints how many configurations had a result when it was cancelled and at the end, how many failed or were
stopped early, the times of the page's redraws, and the best configuration. Exit code 0: the tuning finished, and no failure
ended it."""

from __future__ import annotations

import argparse
import gzip
import json
import statistics
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

_TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(_TESTS), str(_TESTS / "browser")]

from servers import ROOT, served  # noqa: E402
from stream_client import StreamClient  # noqa: E402

from kernelviz.core.configuration import configuration_text  # noqa: E402
from kernelviz.formats import encode  # noqa: E402
from kernelviz.metrics.configurations import configuration_space  # noqa: E402
from kernelviz.store import Store  # noqa: E402

REDRAW_S = 0.8
"""A browser redraws the page at most this often while it follows a run."""


@dataclass
class Followed:
    """What a tuning did: the events with their seconds since the start, and the seconds of each redraw of the page."""

    run_id: str = ""
    events: list[tuple[float, dict[str, Any]]] = field(default_factory=list)
    redraws_s: list[float] = field(default_factory=list)
    done_at_cancel: int = 0
    statuses: list[str] = field(default_factory=list)

    @property
    def failed(self) -> int:
        """Configurations without a correct result, by the last event of each."""
        last = {data["case"]: data["words"] for _, data in self.events if data["kind"] == "done"}
        return sum(words.startswith("✕") for words in last.values())


def follow(url: str, query: dict[str, str], *, cancel_at: float = 0.5, limit_s: float = 1500.0) -> Followed:
    """Start the tuning that the query of the page describes, cancel it when that share of its configurations has a result,
    resume it and follow it to its end. Errors: TimeoutError after `limit_s`; KeyError for a button that the page does not
    show."""
    begun_s = time.perf_counter()
    client, found = StreamClient(url), Followed()
    try:
        client.open(page_name="autotune", **query)
        client.press("autotune_start")
        found.run_id = parse_qs(client.query)["run"][0]
        _follow(url, client, found, begun_s, limit_s, cancel_at=cancel_at)
        client.redraw()
        client.press("autotune_resume")
        _follow(url, client, found, begun_s, limit_s, cancel_at=None)
        found.redraws_s.append(client.redraw())
    finally:
        client.close()
    return found


def _follow(
    url: str, client: StreamClient, found: Followed, begun_s: float, limit_s: float, *, cancel_at: float | None
) -> None:
    """Until the run ends: the events by a thread of their own, as a browser has them, and the page's redraws here."""
    ended = threading.Event()
    after = max((data["id"] for _, data in found.events), default=0)
    listener = threading.Thread(target=_listen, args=(url, found, begun_s, after, ended), daemon=True)
    listener.start()
    cancelled = cancel_at is None
    while not ended.wait(REDRAW_S):
        if time.perf_counter() - begun_s > limit_s:
            raise TimeoutError(f"the tuning {found.run_id} did not end within {limit_s} s")
        found.redraws_s.append(client.redraw())
        last = next((data for _, data in reversed(found.events) if data.get("total")), None)
        if not cancelled and last is not None and cancel_at is not None and last["done"] >= cancel_at * last["total"]:
            cancelled = True
            found.done_at_cancel = last["done"]
            client.press("cancel_autotune")
    listener.join()


def _listen(url: str, found: Followed, begun_s: float, after: int, ended: threading.Event) -> None:
    """Append the events of the run until it ends. The connection is opened again where the server closes it."""
    try:
        while not ended.is_set():
            request = urllib.request.Request(
                f"{url}/api/runs/{found.run_id}/events", headers={"Last-Event-ID": str(after)}
            )
            with urllib.request.urlopen(request, timeout=120) as stream:
                for line in stream:
                    if line.startswith(b"id:"):
                        after = int(line[3:])
                    if line.startswith(b"data:"):
                        data = json.loads(line[5:]) | {"id": after}
                        found.events.append((time.perf_counter() - begun_s, data))
                        if data["kind"] == "ended":
                            found.statuses.append(data["status"])
                            return
    finally:
        ended.set()


def write(found: Followed, home: Path, out: Path) -> dict[str, Any]:
    """Write events and run into the folder; returns the summary that is printed."""
    store = Store.open(home)
    run = store.runs.load(found.run_id)
    store.close()
    out.mkdir(parents=True, exist_ok=True)
    with gzip.open(out / "events.jsonl.gz", "wt") as file:
        for at_s, data in found.events:
            file.write(json.dumps({"at_s": round(at_s, 4), **data}) + "\n")
    with gzip.open(out / "run.json.gz", "wb") as raw:
        raw.write(encode(run))
    space = configuration_space(run)
    states: dict[str, int] = {}
    for one in space.configurations:
        states[one.state] = states.get(one.state, 0) + 1
    return {
        "run": run.id,
        "status": run.status,
        "statuses": found.statuses,
        "planned": space.planned,
        "done_at_cancel": found.done_at_cancel,
        "states": states,
        "best": configuration_text(space.best.values) if space.best else None,
        "best_s": space.best.time_s if space.best else None,
        "speed_up": space.gain.estimate if space.gain else None,
        "events": len(found.events),
        "seconds": round(found.events[-1][0], 1),
        "redraws": len(found.redraws_s),
        "redraw_median_s": round(statistics.median(found.redraws_s), 3),
        "redraw_slowest_s": round(max(found.redraws_s), 3),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="OUT")
    parser.add_argument("--op", default="matmul")
    parser.add_argument("--variant", default="triton_tuned")
    parser.add_argument("--size", action="append", metavar="AXIS=VALUE", default=[])
    parser.add_argument("--configurations", default="500")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--with", dest="plugin", default="", metavar="FILE", help="a file with own variants")
    parser.add_argument("--cancel-at", type=float, default=0.4, help="share of the configurations")
    asked = parser.parse_args(arguments)
    sizes = asked.size or (["m=4096", "n=4096", "k=4096"] if asked.op == "matmul" else [])
    query = {"op": asked.op, "variant": asked.variant, "configurations": asked.configurations, "seed": asked.seed}
    query |= {f"size_{axis}": value for axis, _, value in (size.partition("=") for size in sizes)} | {
        "on": asked.device
    }
    plugins = {"KERNELVIZ_PLUGINS": str(Path(asked.plugin).resolve())} if asked.plugin else {}
    with tempfile.TemporaryDirectory() as folder:
        with served(ROOT / "app.py", Path(folder), **plugins) as url:
            found = follow(url, query, cancel_at=asked.cancel_at)
        summary = write(found, Path(folder) / "home", asked.output)
    print(json.dumps(summary, indent=2))  # noqa: T201
    return 0 if summary["status"] == "finished" and found.statuses == ["cancelled", "finished"] else 1


if __name__ == "__main__":
    raise SystemExit(main())
