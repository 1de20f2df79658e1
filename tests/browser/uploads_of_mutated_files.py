"""The upload of the page History in a Chromium over a real server, with damaged files of every format.

    python tests/browser/uploads_of_mutated_files.py [--count 200] [--seed 2] [--group 20] [--runs 24]

The files (tests/mutations.py) are uploaded in groups. After each group, each file must be listed as imported or as refused with
a reason, and the store must hold the runs that the same files give without a browser, no more and no fewer. Then so many of the
imported runs are opened on Bench, Roofline, Compare and History. At no time may a page show an exception, the console show an
error, the content security policy block something, or the browser send a request to another host than the server.

It prints what it did, and every fault; exit code 1 if there was one.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

_ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(_ROOT), *(str(_ROOT / "tests" / name) for name in ("browser", ""))]

from acting import WIRE, at_rest  # noqa: E402
from conftest import ARGS, BLOCKED, CHROMIUM, REPORTS, STILL  # noqa: E402
from mutations import FORMATS, Mutated, mutated  # noqa: E402
from playwright.sync_api import Browser, Page, expect, sync_playwright  # noqa: E402
from servers import served  # noqa: E402

from kernelviz.bench.history import History  # noqa: E402
from kernelviz.core import KernelvizError  # noqa: E402
from kernelviz.store import Store  # noqa: E402

COMPARED = "h200-rmsnorm"
"""A run that comes with the package, with which imported runs are compared."""


class Watch:
    """What a browser must not do: `faults` so far, and the number of requests to each host."""

    def __init__(self, page: Page, url: str) -> None:
        self.faults: list[str] = []
        self.hosts: Counter[str] = Counter()
        self._page, self._own = page, urlsplit(url).netloc
        page.on("pageerror", lambda error: self.faults.append(f"{page.url}: error in a script: {error}"))
        page.on("console", lambda m: self._console(m.type, m.text))
        page.on("request", lambda request: self._request(request.url))
        page.on("websocket", lambda socket: self._request(socket.url))

    def check(self, what: str) -> None:
        """The page shows no exception."""
        exceptions = self._page.get_by_test_id("stException")
        self.faults += [f"{what}: {text[:600]}" for text in exceptions.all_inner_texts()]

    def _console(self, kind: str, text: str) -> None:
        if kind == "error" or text.startswith(BLOCKED):
            self.faults.append(f"{self._page.url}: console: {text[:600]}")

    def _request(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme in ("data", "blob", "about"):
            return
        self.hosts[parts.netloc] += 1
        if parts.netloc != self._own:
            self.faults.append(f"{self._page.url}: a request to {url[:200]}")


def upload(page: Page, url: str, watch: Watch, files: list[Mutated], folder: Path) -> Counter[str]:
    """Upload the files at once, and return how many were imported and refused by what the page says of each."""
    paths = [folder / file.name for file in files]
    for path, file in zip(paths, files, strict=True):
        path.write_bytes(file.data)
    page.goto(f"{url}/history")
    page.locator("[class*=st-key-upload_popover]").get_by_role("button", name="Upload").first.click()
    page.locator("input[type=file]").set_input_files(paths)
    outcomes = page.locator(".st-key-upload_outcomes")
    expect(outcomes).to_be_visible(timeout=180_000)
    at_rest(page)
    watch.check(f"upload of {files[0].name} to {files[-1].name}")
    counts: Counter[str] = Counter()
    lines = outcomes.locator("p").all_inner_texts()
    for file in files:
        imported = [line for line in lines if f"{file.name} was imported" in line]
        refused = [line for line in lines if line.startswith(f"{file.name} could not be imported: ")]
        counts["imported"] += len(imported)
        counts["refused"] += len(refused)
        if len(imported) + len(refused) != 1:
            watch.faults.append(
                f"{file.name} ({file.damage}) is listed {len(imported)} times as imported, {len(refused)} as refused"
            )
        for line in refused:
            if len(line.partition(": ")[2].split()) < 3 or "Traceback" in line or "please report" in line:
                watch.faults.append(f"{file.name}: no reason in words: {line[:300]}")
    return counts


def imported_here(history: History, files: list[Mutated]) -> dict[str, Mutated]:
    """The ids of the runs that these files give without a browser, each with its file."""
    ids: dict[str, Mutated] = {}
    for file in files:
        try:
            ids |= dict.fromkeys(history.take_in_all(file.data, file=file.name), file)
        except KernelvizError:
            continue
    return ids


def stored_ids(history: History) -> set[str]:
    return {run.id for run in history.find(limit=10**6)}


def open_pages(page: Page, url: str, watch: Watch, run_id: str, file: Mutated) -> int:
    """Open a run on each page, and return how many pages were opened."""
    addresses = (
        f"?run={run_id}", f"?run={run_id}&tab=samples", f"roofline?runs={run_id}", f"compare?a={COMPARED}&b={run_id}",
        f"compare?a={run_id}&b={COMPARED}", f"history?run={run_id}",
    )  # fmt: skip
    for address in addresses:
        page.goto(f"{url}/{address}")
        page.get_by_test_id("stApp").wait_for()
        at_rest(page)
        watch.check(f"{address} of {file.name} ({file.damage}, {sorted(file.fields)})")
    return len(addresses)


def spread(ids: dict[str, Mutated], most: int) -> list[str]:
    """So many runs of as many formats and kinds of damage as possible."""
    by_kind: dict[tuple[str, str], str] = {}
    for run_id, file in ids.items():
        by_kind.setdefault((file.form, file.damage), run_id)
    first = list(by_kind.values())
    step = max(1, len(first) // most)
    return list(dict.fromkeys([*first[::step], *first, *ids]))[:most]


def new_page(browser: Browser) -> Page:
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    for script in (STILL, WIRE, REPORTS):
        context.add_init_script(f"({script})()")
    page = context.new_page()
    page.set_default_timeout(120_000)
    return page


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200, help="how many files")
    parser.add_argument("--seed", type=int, default=2)
    parser.add_argument("--group", type=int, default=20, help="how many files are uploaded at once")
    parser.add_argument("--runs", type=int, default=24, help="how many imported runs are opened on every page")
    options = parser.parse_args()
    files = [mutated(options.seed, number) for number in range(options.count)]
    total: Counter[str] = Counter()
    ids: dict[str, Mutated] = {}
    opened = 0
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        for part in ("server", "files", "here"):
            (folder / part).mkdir()
        here = History(Store.open(folder / "here"))
        with served(_ROOT / "app.py", folder / "server") as url:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGS)
            page = new_page(browser)
            watch = Watch(page, url)
            there = History(Store.open(folder / "server" / "home"))
            for start in range(0, len(files), options.group):
                group = files[start : start + options.group]
                counts = upload(page, url, watch, group, folder / "files")
                ids |= imported_here(here, group)
                if stored_ids(there) != stored_ids(here):
                    watch.faults.append(
                        f"after files {start} to {start + len(group) - 1}: the server's store holds other runs"
                    )
                total += counts
                _say(
                    f"{start + len(group)} of {len(files)} files: {dict(total)}, {there.count()} runs, {len(watch.faults)} faults"
                )
            for run_id in spread(ids, options.runs):
                opened += open_pages(page, url, watch, run_id, ids[run_id])
            browser.close()
    for fault in watch.faults:
        _say(f"FAULT {fault}")
    _say(
        f"{len(files)} files of {len(FORMATS)} formats and {len({(f.form, f.damage) for f in files})} kinds of damage, seed {options.seed}: "  # noqa: E501
        f"{total['imported']} imported, {total['refused']} refused; {min(options.runs, len(ids))} of {len(ids)} runs on {opened} pages; "  # noqa: E501
        f"requests by host: {dict(watch.hosts)}; {len(watch.faults)} faults"
    )
    return bool(watch.faults)


def _say(line: str) -> None:
    print(line, flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main())
