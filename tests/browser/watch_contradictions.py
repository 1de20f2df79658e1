"""A command that uses the page Bench for a while and checks at every redraw that no two numbers on it contradict each other.

    python tests/browser/watch_contradictions.py --minutes 30 [--url URL] [--out FILE]

Without a URL it starts the product's own server with a new database. It presses Run with changing ops, sizes and variants, also
in live mode, and opens each finished run on Roofline, Compare and History. Each finding is a line of JSON with the page's address
and everything that the page said; the last line counts what was checked. The exit status is 1 if there is a finding.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from itertools import count
from pathlib import Path
from typing import Any, TextIO
from urllib.parse import urlencode

sys.path.insert(0, str(Path(__file__).parent))

import contradictions
import other_pages
import screen
from acting import address, at_rest
from conftest import ARGS, CHROMIUM
from playwright.sync_api import Error, Page, expect, sync_playwright
from servers import ROOT, served

from kernelviz.formats import shipped_runs

_EAGER_AND_COMPILED = ("torch_eager", "torch_compile")
_OPS: tuple[tuple[str, tuple[str, ...], dict[str, tuple[str, ...]]], ...] = (
    ("rmsnorm", ("composite_eager", *_EAGER_AND_COMPILED), {"m": ("64,256", "512"), "n": ("256,1024", "512,4096")}),
    ("softmax", ("composite_eager", *_EAGER_AND_COMPILED), {"m": ("64", "256,1024"), "n": ("1024", "256,2048")}),
    ("add", _EAGER_AND_COMPILED, {"n": ("2^12..2^18", "4096,65536,2^20", "2^21")}),
    ("matmul", ("torch_eager",), {"m": ("64..256",), "n": ("128",), "k": ("256",)}),
    ("layernorm", ("composite_eager", *_EAGER_AND_COMPILED), {"m": ("128,512",), "n": ("768,1024",)}),
)
_SHOWN = ("bandwidth", "rate", "time", "speed-up", "winner")
_MOVING = ("during a run", "live")
"""Where the page is redrawn while it is read."""
_REDRAW_MS = 700
_WIDE = {"width": 2600, "height": 2600}
"""A table tells a screen reader only the columns that are in sight."""


class Watch:
    """A page, and what was found on it so far."""

    def __init__(self, page: Page, url: str, out: TextIO, minutes: float) -> None:
        self.page, self.url, self.out = page, url, out
        self.minutes, self.until_s = minutes, 0.0
        self.counts: Counter[str] = Counter()
        self.random = random.Random(20261123)

    @property
    def over(self) -> bool:
        return time.monotonic() > self.until_s

    def write(self, **line: Any) -> None:
        self.out.write(json.dumps({"at": time.strftime("%H:%M:%S"), **line}, ensure_ascii=False) + "\n")
        self.out.flush()

    def found(self, where: str, findings: list[contradictions.Finding], said: list[screen.Snapshot]) -> None:
        """Write each finding, the snapshots once."""
        for number, (check, what) in enumerate(findings):
            self.counts["findings"] += 1
            self.counts[f"finding: {check}"] += 1
            self.write(where=where, check=check, finding=what, url=self.page.url, said=said if number == 0 else None)

    def look(self, where: str) -> screen.Screen | None:
        """Read the page and check it."""
        snapshot = screen.read(self.page)
        if snapshot is None:
            self.counts["redraws that were too short to read"] += 1
            return None
        read = screen.parse(snapshot)
        self.counts["screens"] += 1
        self.counts["lines of tables"] += len(read.lines)
        self.counts["unstable times"] += sum(line.unstable for line in read.lines)
        findings = contradictions.contradictions(read)
        if findings and where in _MOVING:
            # A chart out of sight is drawn a moment after the table. What a reader cannot have read is no contradiction.
            self.page.wait_for_timeout(_REDRAW_MS)
            later = screen.read(self.page)
            still = [] if later is None else contradictions.contradictions(screen.parse(later))
            self.counts[f"gone {_REDRAW_MS} ms later"] += sum(one not in still for one in findings)
            findings = [one for one in findings if one in still]
        self.found(where, findings, [snapshot])
        return read

    def run(self, number: int) -> None:
        """One run of changing ops, sizes and variants, looked at while it goes on and in all views when it has ended."""
        op, variants, axes = _OPS[number % len(_OPS)]
        chosen = variants if number % 3 == 0 else variants[:2]
        query = {axis: self.random.choice(sizes) for axis, sizes in axes.items()} | {
            "op": op, "variants": ",".join(chosen), "budget": self.random.choice(("0.1", "0.25", "0.5")),
            "show": _SHOWN[number % len(_SHOWN)],
        }  # fmt: skip
        self.page.goto(f"{self.url}/?{urlencode(query)}")
        at_rest(self.page)
        self.page.locator(".st-key-run").get_by_role("button", name="Run").click()
        self.page.wait_for_url("**run=**")
        expect(self.page.locator(".st-key-first_visit")).to_have_count(0)
        at_rest(self.page)
        while not self.over and self._goes_on():
            self.look("during a run")
        at_rest(self.page)
        self.counts["runs"] += 1
        self.views()
        self.pages()

    def _goes_on(self) -> bool:
        return self.page.locator(".st-key-tiles").count() == 0 or self.page.locator(".st-key-cancel").count() > 0

    def views(self) -> None:
        """Every view of the chart by size, with cold and with warm times."""
        for cache in ("warm", "cold"):
            self._press("l2", cache)
            for shown in _SHOWN:
                self._press("show", shown)
                self.look(f"{cache}, {shown}")

    def _press(self, key: str, name: str) -> None:
        button = self.page.locator(f".st-key-{key}").get_by_role("radio").filter(has_text=name)
        if button.count():
            button.first.click()
            at_rest(self.page)

    def pages(self) -> None:
        """The run on Roofline, Compare and History, compared with what Bench says."""
        run_id = address(self.page)["run"]
        snapshot = screen.read(self.page)
        if snapshot is None:
            return
        bench = screen.parse(snapshot)
        if not bench.lines:
            return
        self._other(f"roofline?runs={run_id}", bench, snapshot, lambda s: other_pages.roofline_contradicts(bench, s))
        names = [v for v in dict.fromkeys(line.variant for line in bench.lines) if v != bench.baseline]
        for name in names[:2]:
            sides = {
                "a": run_id,
                "b": run_id,
                "variant_a": bench.baseline.replace(" ", "_"),
                "variant_b": name.replace(" ", "_"),
            }
            self._other(
                f"compare?{urlencode(sides)}",
                bench,
                snapshot,
                lambda s, n=name: other_pages.compare_contradicts(bench, s, n),
            )  # type: ignore[misc]
        self._other(f"history?q={run_id}", bench, snapshot, lambda s: other_pages.history_contradicts(bench, s, run_id))

    def _other(self, path: str, bench: screen.Screen, snapshot: screen.Snapshot, check: Any) -> None:
        if self.over:
            return
        self.page.goto(f"{self.url}/{path}")
        at_rest(self.page)
        self.page.wait_for_timeout(300)
        said = screen.read(self.page)
        if said is not None:
            name = path.partition("?")[0]
            self.counts[name] += 1
            self.found(name, [(f"{name} says the same", what) for what in check(said)], [snapshot, said])

    def recorded(self, number: int) -> None:
        """A run that came with the product, in all views: it has roofs, which a busy machine cannot measure."""
        names = shipped_runs.names()
        self.page.goto(f"{self.url}/?run={names[number // 4 % len(names)]}")
        at_rest(self.page)
        self.counts["recorded runs"] += 1
        self.views()
        self.pages()

    def live(self, number: int) -> None:
        """Live mode: change a size some times, and look after each change."""
        op, sizes = (("softmax", "n"), ("add", "n"), ("rmsnorm", "n"))[number % 3]
        self.page.goto(
            f"{self.url}/?{urlencode({'op': op, 'variants': 'torch_eager,composite_eager', 'm': 256, 'n': 1024})}"
            if op != "add"
            else f"{self.url}/?op=add&variants=torch_eager&n=4096"
        )
        at_rest(self.page)
        box = self.page.locator(f".st-key-size_{op}_{sizes} input")
        self.page.locator(".st-key-live_mode label").click()
        self.page.wait_for_url("**run=**")
        for n in (512, 2048, 1536, 4096, 1024):
            if self.over:
                return
            at_rest(self.page)
            box.fill(str(n))
            box.press("Enter")
            self.page.wait_for_timeout(self.random.choice((50, 400, 1500)))
            self.counts["live changes"] += 1
            for _ in range(2):
                self.look("live")

    def calibrate(self) -> None:
        """Measure the roofs, so that shares are on the page. On a busy machine, none may be good enough to be used."""
        self.page.goto(self.url)
        at_rest(self.page)
        self.page.locator(".st-key-first_run").get_by_role("button").click()
        self.page.wait_for_url("**run=**")
        expect(self.page.locator(".st-key-first_visit")).to_have_count(0)
        if self.page.get_by_text("roofs not measured").count():
            self.page.locator(".st-key-calibrate").get_by_role("button").click()
            expect(self.page.get_by_text("Measuring the roofs")).to_have_count(0, timeout=400_000)


@contextmanager
def _server(url: str | None) -> Iterator[str]:
    with (
        tempfile.TemporaryDirectory() as folder,
        nullcontext(url) if url else served(ROOT / "app.py", Path(folder)) as address,
    ):
        yield address


def main() -> int:
    """Watch for the given time; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--url", help="a server that runs already")
    parser.add_argument("--out", type=Path, default=Path("contradictions.jsonl"))
    options = parser.parse_args()
    with options.out.open("w") as out, _server(options.url) as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGS)
        page = browser.new_context(viewport=_WIDE).new_page()  # type: ignore[arg-type]
        page.add_init_script(f"({screen.WHOLE_TABLES})()")
        page.set_default_timeout(120_000)
        expect.set_options(timeout=120_000)
        watch = Watch(page, url, out, options.minutes)
        watch.write(load=os.getloadavg(), checks=[check.__name__ for check in contradictions.CHECKS])
        watch.calibrate()
        watch.until_s = time.monotonic() + 60 * options.minutes
        for number in count():
            if watch.over:
                break
            try:
                {1: watch.recorded, 3: watch.live}.get(number % 4, watch.run)(number)
            except (Error, AssertionError) as error:
                watch.counts["steps that did not come to an end"] += 1
                watch.write(failed=str(error)[:2000], url=page.url)
            watch.write(load=os.getloadavg(), counts=watch.counts)
        watch.write(load=os.getloadavg(), counts=watch.counts, done=True)
    print(json.dumps(watch.counts, indent=1))  # noqa: T201
    return 1 if watch.counts["findings"] else 0


if __name__ == "__main__":
    sys.exit(main())
