"""The offline page: one file, nothing loaded, every text shown as text, under 6 MB for 200 cases."""

from __future__ import annotations

import gzip
import json
import re
from base64 import b64decode
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

import msgspec
import pytest
import sample_figures as figures
import sample_runs as samples

from kernelviz.core.notes import ForeignNote
from kernelviz.core.result import Conditions, Kernel, Result, Timing
from kernelviz.core.run import Run
from kernelviz.formats import digest, exports, shipped_runs
from kernelviz.formats.browser import bundle
from kernelviz.formats.html import allowed, plotly
from kernelviz.metrics.rows import rows
from kernelviz.text.cells import describe_comparison_with_baseline

HOSTILE = "</script></style></pre><img src=x onerror=alert(1)>\"'&<b>x"


class Read(HTMLParser):
    """Elements with their attributes, and the text of each that has an id."""

    def __init__(self, page: bytes) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, str] = {}
        self.words: list[str] = []
        self._open: list[tuple[str, str | None]] = []
        self.feed(page.decode())
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag in ("script", "pre", "code"):
            self._open.append((tag, dict(attrs).get("id")))

    def handle_endtag(self, tag: str) -> None:
        if self._open and self._open[-1][0] == tag:
            self._open.pop()

    def handle_data(self, data: str) -> None:
        inside = self._open[-1] if self._open else None
        if inside is None or inside[0] != "script":
            self.words.append(data)
        if inside is not None and inside[1]:
            self.texts[inside[1]] = self.texts.get(inside[1], "") + data


def page_of(run: Run) -> bytes:
    return exports()["html"].encode(run)


def drawn(read: Read) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(gzip.decompress(b64decode(read.texts["data"])))
    return found


def hostile() -> Run:
    """A run in which every text that a document can hold, axes and variants among them, is a piece of HTML."""
    run = figures.run()

    def planted(value: Any, path: str) -> Any:
        if isinstance(value, dict):
            keys = HOSTILE if path.endswith((".versions", ".other_times", ".sizes")) else ""
            return {k + keys: planted(v, f"{path}.{k}") for k, v in value.items()}
        if isinstance(value, list | tuple):
            return [planted(v, path) for v in value]
        words = path.rpartition(".")[2]
        fixed = ("kind", "status", "schema", "stage", "timer", "launch", "clock", "figures", "level", "unit", "what",
                 "direction", "data", "compute", "figure", "code")  # fmt: skip
        if not isinstance(value, str) or words in fixed or (words == "name" and ".roofs" in path):
            return value
        return value + HOSTILE

    plain = json.loads(msgspec.json.encode(run))
    failed = samples.failed(run.plan.problems[-1], run.plan.variants[-1], "crash", "it died")
    plain["results"][-1] = msgspec.to_builtins(failed)
    plain["results"][0] |= {
        "conditions": msgspec.to_builtins(Conditions(notes=(ForeignNote(text="a note"),), event_reasons=("a reason",))),
        "kernels": [msgspec.to_builtins(Kernel(name="a kernel"))],
    }
    plain["plan"]["plugins"] = ["/home/me/mine.py"]
    plain["note"] = "a note"
    made: Run = msgspec.convert(planted(plain, ""), Run)
    return made


def words_drawn(value: Any) -> Iterator[str]:
    """Every text of charts but what only tells points and groups apart."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name not in ("customdata", "legendgroup"):
                yield from words_drawn(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from words_drawn(inner)
    elif isinstance(value, str):
        yield value


def test_every_text_is_shown_as_text() -> None:
    run = hostile()
    page = page_of(run)
    read, plain = Read(page), Read(page_of(figures.run()))
    assert HOSTILE.encode() not in page
    known = {tag for tag, _ in plain.tags} | {"ul", "li", "pre", "section"}
    assert {tag for tag, _ in read.tags} <= known, "a text opened an element"
    assert Counter(tag for tag, _ in read.tags)["script"] == Counter(tag for tag, _ in plain.tags)["script"]
    assert not any(name.startswith("on") for _, attributes in read.tags for name in attributes)
    said = "".join(read.words)
    for text in (
        run.title,
        run.note,
        run.environment.host,
        run.environment.device.name,
        "it died",
        "a kernel",
        "a reason",
    ):
        assert (text if HOSTILE in text else text + HOSTILE) in said, text
    assert HOSTILE in "".join(drawn(read)["variants"])
    # Plotly reads a few tags in names, titles and words on hover: none of a document's may get there as one.
    shown = list(words_drawn(drawn(read)["charts"]))
    assert any("&lt;img" in words for words in shown)
    assert not any("<img" in words for words in shown)


def test_nothing_is_loaded_and_only_the_pages_own_scripts_may_run() -> None:
    page = page_of(figures.run())
    read = Read(page)
    addresses = [
        v for _, attributes in read.tags for n, v in attributes.items() if n in ("src", "href", "srcset", "data")
    ]
    assert addresses == ["https://plotly.com/javascript/"], "a link for the reader, the only one"
    assert "url(" not in page.decode().partition("<script")[0]
    policy = next(a["content"] for t, a in read.tags if a.get("http-equiv") == "Content-Security-Policy") or ""
    assert policy.startswith("default-src 'none';")
    own = re.search(r'<script type="module">(.*?)</script>', page.decode(), re.DOTALL)
    assert own is not None
    scripts = re.search(r"script-src (.*?);", policy)
    assert scripts is not None
    assert scripts[1].split() == [allowed(own[1]), plotly()[1]]
    library = gzip.decompress(b64decode(read.texts["plotly"])).decode()
    assert allowed(library) == plotly()[1]
    assert library == bundle.script().decode()
    assert library.startswith("/**\n* plotly.js v")
    assert "Licensed under the MIT license" in library[:300]


def many(count: int) -> Run:
    """Cases as an H100 gave them, with all their samples, again at other sizes until there are so many."""
    run = shipped_runs.load("h100-80gb-hbm3-copy")
    per_size = len(run.plan.variants)
    results: list[Result] = []
    problems = []
    for number in range(-(-count // per_size)):
        old = run.plan.problems[number % len(run.plan.problems)]
        new = msgspec.structs.replace(
            old, sizes={a: s + number // len(run.plan.problems) for a, s in old.sizes.items()}
        )
        problems.append(new)
        results += [msgspec.structs.replace(r, problem=new) for r in run.results if r.problem == old]
    plan = msgspec.structs.replace(run.plan, problems=tuple(problems))
    return msgspec.structs.replace(run, plan=plan, results=tuple(results[:count]))


@pytest.mark.timeout(120)
def test_two_hundred_cases_with_all_their_samples_are_under_six_megabytes() -> None:
    run = many(200)
    assert len(run.results) == 200
    page = page_of(run)
    assert 1_500_000 < len(page) < 6_000_000, "Plotly alone is 0.5 MB, samples are there"
    read = Read(page)
    charts = drawn(read)["charts"]
    orders = [c for k, c in charts.items() if "/order/" in k]
    assert len(orders) >= 200, "each case's samples are drawn"
    said = re.search(r"At most (\d+) evenly chosen samples", "".join(read.words))
    assert said is not None
    assert int(said[1]) in (400, 200, 100, 50)
    longest = max(len(t["x"]) for c in orders for t in c["data"] if "hovertext" not in t)
    assert 50 <= longest <= int(said[1])


def test_the_tables_say_what_the_run_says() -> None:
    run = samples.run()
    page = page_of(run).decode()
    table = re.search(r"<table id=cases-cold>(.*?)</table>", page, re.DOTALL)
    assert table is not None
    lines = re.findall(r"<tr>(.*?)</tr>", table[1].partition("<tbody>")[2], re.DOTALL)
    found = rows(run, run.environment.roofs)
    assert len(lines) == len(found)
    for line, row in zip(lines, found, strict=True):
        assert row.figure is not None
        assert f"data-v={row.figure.estimate * 1e6:.9g}" in line or f"data-v={row.figure.estimate * 1e3:.9g}" in line
        assert str(describe_comparison_with_baseline(row)).replace("&", "&amp;") in line
        assert "✓ good" in line or "◐ caveats" in line or "⚠ unreliable" in line
    assert digest(run) in page


def test_every_view_that_the_page_offers_has_its_chart() -> None:
    for run in (figures.run(), shipped_runs.load("h200-matmul"), samples.mixed()):
        data = drawn(Read(page_of(run)))
        for l2 in data["l2"]:
            for axis in data["axes"] or [""]:
                assert all(f"{l2}/by/{name}/{axis}" in data["charts"] for name in data["show"])
            for size in range(len(data["sizes"])):
                assert {f"{l2}/roof/{size}", f"{l2}/bars/{size}"} <= data["charts"].keys()
        assert data["words"].keys() == data["charts"].keys()
        assert all(data["words"].values()), "a chart without words for who does not see it"
        assert all(t["type"] != "scattergl" for c in data["charts"].values() for t in c["data"])
        assert not any("template" in c["layout"] for c in data["charts"].values())


def test_a_run_without_results_failures_only_or_from_another_tool_still_makes_a_page() -> None:
    run = samples.run()
    problem = run.plan.problems[0]
    bare = msgspec.structs.replace(run, results=(), status="interrupted")
    assert "0 of 30 cases have a result" in "".join(Read(page_of(bare)).words)
    failed = [samples.failed(problem, v, "crash", "it died") for v in run.plan.variants]
    only = msgspec.structs.replace(run, results=tuple(failed), status="cancelled")
    assert "it died" in "".join(Read(page_of(only)).words)
    foreign = msgspec.structs.replace(
        run,
        method=msgspec.structs.replace(run.method, figures=(), clock=None, budget_s=0.0),
        plan=msgspec.structs.replace(run.plan, problems=(msgspec.structs.replace(problem, direction=None, data=None),)),
        results=(Result(problem=msgspec.structs.replace(problem, direction=None, data=None), variant="torch_eager",
                        outcome=Timing()),),
    )  # fmt: skip
    said = "".join(Read(page_of(foreign)).words)
    assert "Another tool measured this run" in said
    assert "kernelviz run" not in said


def test_the_same_run_makes_the_same_bytes() -> None:
    assert page_of(figures.run()) == page_of(figures.run())
