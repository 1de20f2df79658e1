"""The checks of the page Bench find each kind of contradiction, and nothing on a page without one."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import contradictions
import other_pages
import pytest
import screen

HEADS = [
    "Variant",
    "n",
    "Cold time, µs",
    "±, %",
    "Bandwidth, GB/s",
    "Share of roof, %",
    "Versus torch eager",
    "Result",
    "Quality",
]
"""Of the table. At n = 1024 eager takes 200 µs and compile 100 µs; at 2048 compile is not stable; at 4096 eager is faster."""
PASSED = "✓ correct, error 50 % of tolerance"
UNSTABLE = "412 µs, then 4.97 ms (not stable)"
LEVELS = "? unclear: one of the times has two levels, and the verdict depends on which one counts"
TABLE = [
    HEADS,
    ["torch eager", "1024", "200.0", "1.0", "10.0", "50.0", "baseline", PASSED, "✓ good"],
    ["torch compile", "1024", "100.0", "1.0", "20.0", "100.0", "▲ 2.00× faster (1.98–2.02)", PASSED, "✓ good"],
    ["torch eager", "2048", "400.0", "1.0", "10.0", "50.0", "baseline", PASSED, "✓ good"],
    ["torch compile", "2048", "", "", "", "", LEVELS, PASSED, f"⚠ unreliable: not stable: {UNSTABLE}"],
    ["torch eager", "4096", "800.0", "1.0", "10.0", "50.0", "baseline", PASSED, "✓ good"],
    ["torch compile", "4096", "1000.0", "1.0", "8.0", "40.0", "▼ 1.25× slower (1.24–1.26)", PASSED, "✓ good"],
]  # fmt: skip


def trace(name: str, sizes: list[int], y: list[float], texts: list[str], **more: Any) -> dict[str, Any]:
    keys = [f"add fp32 n={n}" for n in sizes]
    return {"name": name, "customdata": keys, "x": sizes, "y": y, "hovertext": texts, "type": "scatter", **more}


def hover(name: str, time: str, share: int | None = None, versus: str = "") -> str:
    rate = "" if share is None else f"<br>10 GB/s · {share}.0 % of the measured roof"
    return f"<b>{name}</b><br>{time}{rate}<br>{versus}"


EAGER = [hover("torch eager", f"{t} µs ± 1.0 %", 50) for t in ("200.0", "400.0", "800.0")]
COMPILE = [
    hover("torch compile", "100.0 µs ± 1.0 %", 100, "▲ 2.00× faster (1.98–2.02)"),
    hover("torch compile", UNSTABLE),
    hover("torch compile", "1.000 ms ± 1.0 %", 40, "▼ 1.25× slower (1.24–1.26)"),
]
BY_SIZE = {
    "data": [
        trace("torch eager", [1024, 2048, 4096], [10.0, 10.0, 10.0], EAGER, error_y={}),
        trace("torch compile", [1024, 2048, 4096], [20.0, 9.0, 8.0], COMPILE, error_y={}),
        trace("measured roof", [1024, 2048, 4096], [20.0, 20.0, 20.0], ["", "", ""]),
    ],
    "notes": [], "x": "n", "y": "bandwidth (cold L2), GB/s",
}  # fmt: skip
UNCLEAR = "torch eager may be the fastest; unclear against</b><br><b>torch compile"
WINNERS = {
    "data": [
        trace("", [1024], [1], ["<b>torch compile is the fastest</b>"], type="bar"),
        trace("", [2048], [1], [f"<b>{UNCLEAR}</b><br>torch eager: 400.0 µs ± 1.0 %<br>torch compile: {UNSTABLE}"], type="bar"),
        trace("", [4096], [1], ["<b>torch eager is the fastest</b>"], type="bar"),
    ],
    "notes": [], "x": "n", "y": "",
}  # fmt: skip
BARS = {
    "data": [
        {"name": "torch eager", "type": "bar", "x": [0.8], "y": ["torch eager"], "customdata": ["add fp32 n=4096"]},
        {"name": "torch compile", "type": "bar", "x": [1.0], "y": ["torch compile"], "customdata": ["add fp32 n=4096"]},
    ],
    "notes": [{"text": "800.0 µs · 50 %", "y": "torch eager"}, {"text": "1.000 ms · 40 %", "y": "torch compile"}],
    "x": "time, ms", "y": "",
}  # fmt: skip


def page(**charts: Any) -> screen.Snapshot:
    """A page without a contradiction: geometric means of 1024 and 4096 are 400 µs for eager and 316 µs for compile."""
    return copy.deepcopy({
        "url": "",
        "tiles": [
            ["Best overall", "torch compile", "lowest geometric mean time, 2 of 3 sizes"],
            ["Most wins", "2 variants", "each alone at 1 of 3 sizes"],
            ["Speed-up over torch eager", "1.26×", "geometric mean, 2 sizes; at 1 other size the difference is unclear"],
            ["Share of the measured roof", "70 %", "mean, 2 sizes; best 100 %"],
            ["Worst size", "n = 4,096", "40 % of the roof"],
        ],
        "tables": [TABLE],
        "charts": {"by_size": BY_SIZE, "bars": BARS, **charts},
        "items": ["torch eager 800.0 µs ± 1.0 % · baseline\n✓ good",
                  "torch compile 1.000 ms ± 1.0 % · ▼ 1.25× slower (1.24–1.26)\n✓ good"],
        "captions": [], "paragraphs": [],
    })  # fmt: skip


def winner_page() -> screen.Snapshot:
    said = page(by_size=WINNERS)
    said["items"] += ["Of 3 sizes: torch compile is fastest at 1, torch eager is fastest at 1, it is unclear at 1."]
    return said


def cell(row: int, title: str, value: str) -> Callable[[screen.Snapshot], None]:
    return lambda said: said["tables"][0][row].__setitem__(HEADS.index(title), value)


def tile(number: int, value: str, basis: str | None = None) -> Callable[[screen.Snapshot], None]:
    def change(said: screen.Snapshot) -> None:
        said["tiles"][number][1:] = [value, said["tiles"][number][2] if basis is None else basis]

    return change


def chart(key: str, number: int, what: str, at: int, value: Any) -> Callable[[screen.Snapshot], None]:
    return lambda said: said["charts"][key]["data"][number][what].__setitem__(at, value)


def label(number: int, text: str) -> Callable[[screen.Snapshot], None]:
    return lambda said: said["charts"]["bars"]["notes"][number].__setitem__("text", text)


def item(number: int, text: str) -> Callable[[screen.Snapshot], None]:
    return lambda said: said["items"].__setitem__(number, text)


PLANTED: dict[str, tuple[str, Callable[[screen.Snapshot], None]]] = {
    "38 times as long is 1.88× slower": ("speed_up_is_the_ratio", cell(6, "Versus torch eager", "▼ 1.88× slower (1.85–1.91)")),
    "equal, though twice as fast": ("speed_up_is_the_ratio", cell(2, "Versus torch eager", "= same (within 0.9 %)")),
    "times of shared rounds with another ratio": ("speed_up_is_the_ratio", cell(
        6, "Versus torch eager", "▼ 1.25× slower (1.24–1.26); in the rounds of both: 29.6 ms against 776 µs")),
    "a baseline with a time has none": ("reason_without", cell(6, "Versus torch eager", "the baseline has no time")),
    "an interval beside its estimate": ("interval_of_a_verdict", cell(6, "Versus torch eager", "▼ 1.25× slower (1.31–1.40)")),
    "a bandwidth of another time": ("same_work_at_a_size", cell(2, "Bandwidth, GB/s", "30.0")),
    "a share of another time": ("same_work_at_a_size", cell(2, "Share of roof, %", "90.0")),
    "a bandwidth of a time with two levels": ("unstable_time", cell(4, "Bandwidth, GB/s", "9.0")),
    "a time with two levels": ("unstable_time", cell(4, "Cold time, µs", "450.0")),
    "a rate in the hover of a time with two levels": ("unstable_time", chart(
        "by_size", 1, "hovertext", 1, COMPILE[1] + "<br>9.000 GB/s")),
    "no word of two levels in the chart": ("unstable_time", chart("by_size", 1, "hovertext", 1, "450.0 µs ± 1.0 %")),
    "a point beside its number": ("charts_and_table", chart("by_size", 0, "y", 0, 11.0)),
    "a hover with another time": ("charts_and_table", chart("by_size", 0, "hovertext", 0, hover("torch eager", "300.0 µs", 50))),
    "a hover with another share": ("charts_and_table", chart("by_size", 0, "hovertext", 0, hover("torch eager", "200.0 µs", 60))),
    "a hover with another verdict": ("charts_and_table", chart(
        "by_size", 1, "hovertext", 0, hover("torch compile", "100.0 µs", 100, "▲ 3.00× faster (2.98–3.02)"))),
    "a bar of another length": ("charts_and_table", chart("bars", 0, "x", 0, 0.9)),
    "a label of another time": ("charts_and_table", label(0, "900.0 µs · 50 %")),
    "a label of another share": ("charts_and_table", label(0, "800.0 µs · 60 %")),
    "a bar is missing": ("charts_and_table", lambda said: said["charts"]["bars"]["data"].pop()),
    "a list with another time": ("list_and_table", item(0, "torch eager 900.0 µs ± 1.0 % · baseline")),
    "a list with another verdict": ("list_and_table", item(1, "torch compile 1.000 ms ± 1.0 % · ▲ 1.25× faster (1.24–1.26)")),
    "a share of another roof": ("share_is_rate_over_roof", chart("by_size", 2, "y", 0, 25.0)),
    "a share above 100 % without a word": ("shares_above_the_roof", cell(2, "Share of roof, %", "120.0")),
    "an explanation without a share above 100 %": ("shares_above_the_roof", lambda said: said["captions"].append(
        "2 cases above 100 % of the roof (up to 150.0 %).")),
    "another best variant": ("tile_best_overall", tile(0, "torch eager")),
    "a mean over sizes without a time": ("tile_best_overall", tile(0, "torch compile", "lowest geometric mean time, 3 sizes")),
    "another mean speed-up": ("tile_speed_up", tile(2, "1.88×")),
    "another number of unclear sizes": ("tile_speed_up", tile(2, "1.26×", "geometric mean, 2 sizes")),
    "another mean share": ("tile_share_and_worst_size", tile(3, "75 %")),
    "another best share": ("tile_share_and_worst_size", tile(3, "70 %", "mean, 2 sizes; best 90 %")),
    "another worst share": ("tile_share_and_worst_size", tile(4, "n = 1,024", "30 % of the roof")),
    "more wins than sizes that are won": ("tile_wins_most_sizes", tile(1, "torch eager", "alone at 2 of 3 sizes")),
    "undecided, though sizes are won": ("tile_wins_most_sizes", tile(1, "undecided", "at all 3 sizes it is unclear")),
}  # fmt: skip
OF_WINNERS: dict[str, tuple[str, Callable[[screen.Snapshot], None]]] = {
    "a winner that is slower than the baseline": ("winners_follow", chart(
        "by_size", 2, "hovertext", 0, "<b>torch compile is the fastest</b>")),
    "a tie that is decided": ("winners_follow", chart(
        "by_size", 0, "hovertext", 0, "<b>torch compile and torch eager are the fastest (statistical tie)</b>")),
    "a single time of a time with two levels": ("unstable_time", chart(
        "by_size", 1, "hovertext", 0, f"<b>{UNCLEAR}</b><br>torch compile: 450 µs")),
    "a sentence with other counts": ("sentences_follow", item(
        2, "Of 3 sizes: torch compile is fastest at 2, it is unclear at 1.")),
    "a tile with other ties": ("tile_wins_most_sizes", tile(1, "torch eager", "alone at 1 of 3 sizes, tied at 1")),
}  # fmt: skip


@pytest.mark.parametrize("made", [page, winner_page])
def test_nothing_is_found_on_a_page_that_agrees(made: Callable[[], screen.Snapshot]) -> None:
    read = screen.parse(made())
    assert (len(read.lines), len(read.bars), len(read.compared)) == (6, 2, 2)
    assert contradictions.contradictions(read) == []


@pytest.mark.parametrize("name", [*PLANTED, *OF_WINNERS])
def test_a_planted_contradiction_is_found(name: str) -> None:
    check, plant = (PLANTED | OF_WINNERS)[name]
    said = page() if name in PLANTED else winner_page()
    plant(said)
    found = [of for of, _ in contradictions.contradictions(screen.parse(said))]
    assert any(of.startswith(check) for of in found), found


def test_every_check_has_a_planted_contradiction() -> None:
    planted = [check for check, _ in (PLANTED | OF_WINNERS).values()]
    assert [c.__name__ for c in contradictions.CHECKS if not any(c.__name__.startswith(p) for p in planted)] == []


ROOFLINE = [
    ["Variant", "Sizes", "Share of roof, %", "Limiter", "Time, µs", "±, %", "Bandwidth, GB/s"],
    *([line[0], f"n = {int(line[1]):,}", line[5], "unclear", line[2], line[3], line[4]] for line in TABLE[1:]),
]
COMPARE = [
    ["Verdict", "Variant A", "Variant B", "n", "Time B / time A", "Time A, µs", "Time B, µs"],
    ["▼ slower", "torch eager", "torch compile", "4096", "1.25", "800.0", "1000.0"],
    ["? unclear", "torch eager", "torch compile", "2048", "", "400.0", ""],
    ["▲ faster", "torch eager", "torch compile", "1024", "0.5", "200.0", "100.0"],
]


def changed(table: list[list[str]], row: int, column: int, text: str) -> screen.Snapshot:
    new = copy.deepcopy(table)
    new[row][column] = text
    return {"tables": [new]}


def test_other_pages_say_the_same_as_bench() -> None:
    bench = screen.parse(page())
    assert list(other_pages.roofline_contradicts(bench, {"tables": [ROOFLINE]})) == []
    assert list(other_pages.compare_contradicts(bench, {"tables": [COMPARE]}, "torch compile")) == []
    assert list(other_pages.history_contradicts(bench, {"captions": ["add · CPU · 6 cases"]}, "id")) == []
    for column, text in ((2, "60.0"), (4, "210.0"), (5, "9.0"), (6, "11.0"), (0, "liger")):
        assert list(other_pages.roofline_contradicts(bench, changed(ROOFLINE, 1, column, text))), text
    assert list(other_pages.roofline_contradicts(bench, changed(ROOFLINE, 4, 4, "450.0"))), "a number for two levels"
    for column, text in ((0, "= same"), (4, "1.35"), (5, "700.0"), (6, "1100.0")):
        assert list(other_pages.compare_contradicts(bench, changed(COMPARE, 1, column, text), "torch compile")), text
    for text in ("add · CPU · 5 cases", "add · CPU · 6 cases, 1 failed", "add · CPU"):
        assert list(other_pages.history_contradicts(bench, {"captions": [text]}, "id")), text
