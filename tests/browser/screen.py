"""What the page Bench says, read from the browser at one moment: tiles, table, charts, lists and sentences."""

from __future__ import annotations

import html
import re
import time
from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import Page

# One call, so that everything is of one moment. If an element of an earlier run of the script is left (stale), nothing is read.
_SNAPSHOT = """() => {
  const app = document.querySelector("[data-testid=stApp]");
  if (!app || app.dataset.testScriptState !== "notRunning") return null;
  if (document.querySelector("[data-stale=true], [data-testid=stSkeleton]")) return null;
  const shown = (e) => e.checkVisibility();
  const all = (selector, of = document) => [...of.querySelectorAll(selector)].filter(shown);
  const text = (e) => (e ? e.innerText : "");
  // A table is drawn on a canvas; what a screen reader is told appears a moment later.
  const whole = (t) => t && t.querySelectorAll("tr").length >= Number(t.getAttribute("aria-rowcount"));
  if (all("[data-testid=stDataFrame]").some(d => !whole(d.querySelector("table")))) return null;
  const chart = (g) => ({
    data: g.data, notes: (g.layout.annotations || []).map(a => ({text: a.text, y: a.y})),
    y: ((g.layout.yaxis || {}).title || {}).text || "", x: ((g.layout.xaxis || {}).title || {}).text || "",
  });
  const charts = {};
  for (const g of all(".js-plotly-plot")) {
    const key = (g.closest("[class*=st-key-]").className.match(/st-key-([\\w-]+)/) || [])[1];
    if (charts[key]) return null;
    charts[key] = chart(g);
  }
  const table = (t) => [...t.querySelectorAll("tr")].map(r => [...r.querySelectorAll("th,td")].map(c => c.textContent));
  return {
    url: location.href,
    tiles: all("[data-testid=stMetric]").map(m => [
      text(m.querySelector("[data-testid=stMetricLabel]")), text(m.querySelector("[data-testid=stMetricValue]")),
      text(m.querySelector("[data-testid=stMetricDelta]")),
    ]),
    tables: [...document.querySelectorAll("[data-testid=stDataFrame] table")].map(table),
    charts,
    items: all("[data-testid=stMarkdownContainer] li").map(text),
    captions: all("[data-testid=stCaptionContainer]").map(text),
    paragraphs: all("[data-testid=stMarkdownContainer] p").map(text),
  };
}"""

Snapshot = dict[str, Any]
WHOLE_TABLES = """() => {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync("[data-testid=stDataFrame], [data-testid=stDataFrame] *:has(canvas) {" +
    "height: 5400px !important; max-height: none !important }");
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
}"""
"""A table tells a screen reader only the rows that it has space for: with this script in a page, it has space for 150."""


def read(page: Page, timeout_s: float = 15.0) -> Snapshot | None:
    """What the page says, once it says the same twice in a row; None if it is redrawn all the time."""
    until_s = time.monotonic() + timeout_s
    before = None
    while time.monotonic() < until_s:
        now = page.evaluate(_SNAPSHOT)
        if now is not None and now == before:
            return dict(now)
        before = now
        page.wait_for_timeout(150)
    return None


Size = frozenset[tuple[str, int]]
"""The sizes of a problem on the axes that the table shows."""
_SIZES = re.compile(r"(\w+)=(\d+)")
_LENGTHS_S = {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}
_RATES = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
TIME = re.compile(r"([\d.]+) (s|ms|µs|ns)\b")


@dataclass
class Line:
    """A row of the table, in SI base units; None where the cell is empty."""

    variant: str
    size: Size
    time_s: float | None
    width: float | None
    bandwidth: float | None
    rate: float | None
    share: float | None
    versus: str
    result: str
    quality: str

    @property
    def unstable(self) -> bool:
        """Whether it has two levels; "not stable at first" is said of a time that was measured again and is stable now."""
        return "not stable:" in self.quality

    @property
    def timed(self) -> bool:
        """Whether it has a time, be it with one level or with two."""
        return not self.failed and (self.time_s is not None or self.unstable)

    @property
    def failed(self) -> bool:
        return self.result.startswith("✕")


@dataclass
class Dot:
    """A point or bar of a chart: its value in SI base units (a speed-up is a factor), and its hover text or label."""

    variant: str
    size: Size
    value: float
    text: str


@dataclass
class Cell:
    """A size in the view of winners: what the hover text says."""

    size: Size
    heading: str
    text: str

    @property
    def outcome(self) -> str:
        if "statistical tie" in self.heading:
            return "tied"
        return "unclear" if "may be the fastest" in self.heading else "won" if "fastest" in self.heading else "none"

    @property
    def names(self) -> list[str]:
        """The variants that may be the fastest."""
        first, _, others = self.heading.partition("; unclear against ")
        first = re.sub(r" (is|are|may be) the fastest.*", "", first)
        return [*first.split(" and "), *(others.split(", ") if others else [])]


@dataclass
class Screen:
    """The parsed content of a snapshot of the page Bench."""

    tiles: dict[str, tuple[str, str]] = field(default_factory=dict)
    lines: list[Line] = field(default_factory=list)
    baseline: str = ""
    headline: str = "cold"
    by_size_quantity: str = ""
    by_size: list[Dot] = field(default_factory=list)
    roof: list[Dot] = field(default_factory=list)
    """The measured roof of the chart by size, in its quantity."""
    winners: list[Cell] = field(default_factory=list)
    roofline: list[Dot] = field(default_factory=list)
    bars: list[Dot] = field(default_factory=list)
    compared: list[str] = field(default_factory=list)
    captions: list[str] = field(default_factory=list)
    sentences: list[str] = field(default_factory=list)


def parse(snapshot: Snapshot) -> Screen:
    """The content of the snapshot. What a page does not show is empty."""
    screen = Screen()
    screen.tiles = {label: (value, basis) for label, value, basis in snapshot["tiles"]}
    table = next((t for t in snapshot["tables"] if len(t) > 1 and any(h.startswith("Versus ") for h in t[0])), None)
    axes = [] if table is None else _read_table(screen, table)
    for key, chart in snapshot["charts"].items():
        _READERS.get(key, lambda *_: None)(screen, chart, axes)
    items = snapshot["items"]
    names = "|".join({re.escape(line.variant) for line in screen.lines})
    screen.compared = [i for i in items if names and re.match(rf"\s*(?:{names}) (?:\d|no |✕)", i)]
    screen.sentences = [i for i in items if i not in screen.compared]
    screen.captions = snapshot["captions"]
    return screen


def number(text: str) -> float | None:
    """A number of a cell; None if it is empty."""
    return float(text.replace(",", "")) if text.strip() not in ("", "–", "None") else None


def _read_table(screen: Screen, table: list[list[str]]) -> list[str]:
    heads, *rows = table
    column = {re.sub(r",? ?[^,]*$", "", h) if ", " in h else h: (i, h.rpartition(", ")[2]) for i, h in enumerate(heads)}
    name = next(h for h in column if h.endswith(" time"))
    versus = next((h for h in heads if h.startswith("Versus ")), "")
    screen.headline, screen.baseline = name.split()[0].lower(), versus.removeprefix("Versus ")
    start, end = heads.index("Variant") + 1, column[name][0]
    axes = [axis for head in heads[start:end] for axis in head.split(" = ")]  # axes of the same sizes share a column

    def value(row: list[str], title: str, scale: float | None = None) -> float | None:
        if title not in column:
            return None
        at, unit = column[title]
        of = number(row[at])
        return None if of is None else of * (scale or _LENGTHS_S[unit])

    for row in rows:
        cells = dict(zip(heads, row, strict=True))
        size = frozenset(
            (axis, int(float(cells[head].replace(",", "")))) for head in heads[start:end] for axis in head.split(" = ")
        )
        screen.lines.append(
            Line(
                cells["Variant"], size, value(row, name), value(row, "±", 0.01), value(row, "Bandwidth", 1e9),
                value(row, "Rate", 1e12), value(row, "Share of roof", 0.01), cells.get(versus, ""),
                cells.get("Result", ""), cells.get("Quality", ""),
            )
        )  # fmt: skip
    return axes


def _size(key: str, axes: list[str]) -> Size:
    sizes = {axis: int(n) for axis, n in _SIZES.findall(key)}
    return frozenset((axis, sizes[axis]) for axis in axes if axis in sizes)


def _unit(title: str) -> float:
    unit = title.rpartition(", ")[2]
    if unit in _LENGTHS_S:
        return _LENGTHS_S[unit]
    return _RATES[re.sub(r"(B|FLOP)/s$", "", unit)] if unit.endswith("/s") else 1.0


def _texts(trace: dict[str, Any]) -> list[str]:
    return [html.unescape(re.sub(r"<br>", "\n", t)) for t in trace.get("hovertext") or []]


def _read_by_size(screen: Screen, chart: dict[str, Any], axes: list[str]) -> None:
    if not chart["y"].startswith(("time", "bandwidth", "rate", "speed-up")):
        for trace in chart["data"]:
            for key, text in zip(trace.get("customdata") or [], _texts(trace), strict=False):
                heading = " ".join(re.findall(r"<b>(.*?)</b>", text))  # a long one is on several lines
                screen.winners.append(Cell(_size(key, axes), heading, text))
        return
    screen.by_size_quantity = re.split(r" \(| over ", chart["y"])[0]
    scale = _unit(chart["y"])
    for trace in chart["data"]:
        into = screen.by_size if "error_y" in trace else screen.roof
        wrong = (trace.get("name") or "").endswith("✕ wrong")
        if trace.get("yaxis") == "y2" or wrong or "customdata" not in trace:
            continue
        for key, y, text in zip(trace["customdata"], trace["y"], _texts(trace), strict=True):
            into.append(Dot(html.unescape(trace["name"]), _size(key, axes), y * scale, text))


def _read_roofline(screen: Screen, chart: dict[str, Any], axes: list[str]) -> None:
    for trace in chart["data"]:
        for key, y, text in zip(trace.get("customdata") or [], trace["y"], _texts(trace), strict=False):
            screen.roofline.append(Dot(html.unescape(trace["name"]), _size(key, axes), y, text))


def _read_bars(screen: Screen, chart: dict[str, Any], axes: list[str]) -> None:
    labels = {n["y"]: html.unescape(n["text"]) for n in chart["notes"]}
    scale = _unit(chart["x"]) if chart["x"] else 1.0
    for trace in chart["data"]:
        if trace["type"] == "bar":
            name = trace["y"][0]
            size = _size(trace["customdata"][0], axes)
            screen.bars.append(Dot(html.unescape(name), size, trace["x"][0] * scale, labels.get(name, "")))


_READERS = {"by_size": _read_by_size, "roofline": _read_roofline, "bars": _read_bars}
