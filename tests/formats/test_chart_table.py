"""A chart copied as data and as Markdown: hostile names do nothing in a spreadsheet, in a table or in an issue."""

from __future__ import annotations

import json
import shutil
import subprocess
from importlib.resources import files
from typing import Any

import earlier_runs
import pytest

from kernelviz import plots
from kernelviz.formats.browser import figure_json
from kernelviz.metrics.comparison import compare

NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="needs node")
RUN = """
const plain = (text) => text.replace(/<br>/g, ", ").replace(/<[^>]*>/g, "");
const { figure, about } = JSON.parse(require("fs").readFileSync(0, "utf8"));
const table = tableOf(figure, plain);
console.log(JSON.stringify([tabSeparated(table), markdownTable(table, about)]));
"""


def copied(figure: Any, title: str = "t", link: str = "http://x/?a=1") -> tuple[list[list[str]], list[str]]:
    """The cells of the copied data, and the lines of the copied Markdown."""
    script = (files("kernelviz.formats.browser") / "chart_table.js").read_text("utf-8") + RUN
    given = {"figure": figure, "about": {"title": title, "facts": "NVIDIA H200", "link": link}}
    done = subprocess.run(
        [str(NODE), "-e", script], input=json.dumps(given), capture_output=True, text=True, check=True, timeout=60
    )
    data, markdown = json.loads(done.stdout)
    return [line.split("\t") for line in data.split("\n")], markdown.split("\n")


def scatter(name: str) -> dict[str, Any]:
    trace = {"type": "scatter", "name": name, "x": [1, 2], "y": [-3.5, None]}
    return {"data": [trace], "layout": {"xaxis": {"title": {"text": "n"}}, "yaxis": {"title": {"text": "time, ms"}}}}


@pytest.mark.parametrize("name", ["=1+1", "+x", "-x", "@SUM(A1)"])
def test_a_name_is_no_formula_and_a_negative_number_is_a_number(name: str) -> None:
    cells, _ = copied(scatter(name))
    assert cells == [["series", "n", "time, ms"], [f"'{name}", "1", "-3.5"]]


@pytest.mark.parametrize("name", ["a|b", "[x](http://e)", "@you", "`x`", "a_b_c", "#12", "![x](y)"])
def test_a_name_is_code_in_markdown(name: str) -> None:
    _, lines = copied(scatter(name), title=name)
    shown = name.replace("`", "") if "`" not in name else name
    assert lines[0].startswith("**`")
    row = lines[6]
    assert shown.replace("|", "\\|") in row
    assert row.replace("\\|", "").count("|") == 4, "the cells stay cells"
    assert row.startswith("| `")


def test_a_mark_on_an_axis_that_is_not_drawn_has_no_value() -> None:
    """The marks of failed cases stand in a row at the bottom of the chart, and name their variant."""
    figure = scatter("fast")
    figure["data"].append(
        {
            "type": "scatter",
            "mode": "markers",
            "name": "not measured",
            "text": ["slow"],
            "x": [2],
            "y": [0.03],
            "yaxis": "y2",
        }
    )
    figure["layout"]["yaxis2"] = {"visible": False}
    cells, _ = copied(figure)
    assert cells == [["series", "n", "time, ms"], ["fast", "1", "-3.5"], ["slow: not measured", "2", ""]]


def test_a_link_ends_where_it_ends() -> None:
    _, lines = copied(scatter("a"), link="http://x/?a=> [b](c)")
    assert lines[2] == "<http://x/?a=%3E%20[b](c)>"


def test_ratios_rates_and_names_of_sizes_are_those_of_the_data() -> None:
    """The chart draws logarithms of ratios, flop/s under a title in TFLOP/s, and sizes at the positions 0, 1, …"""
    run = earlier_runs.load("h200-softmax")
    comparison = compare(run, run, variant_a="torch_eager", variant_b="triton_persistent")
    cells, _ = copied(figure_json.drawable(plots.ratio_by_case(comparison)))
    assert cells[0][1:3] == ["time of B / time of A", "case"]
    ratio = comparison.pairs[0].ratio
    assert ratio is not None
    assert [float(cells[1][i]) for i in (1, 3, 4)] == pytest.approx([ratio.estimate, ratio.low, ratio.high], rel=1e-5)
    cells, _ = copied(figure_json.drawable(plots.rate_by_intensity(run)))
    assert cells[0][2] == "rate, TFLOP/s"
    assert all(float(row[2]) < 1000 for row in cells[1:])
    cells, _ = copied(figure_json.drawable(plots.winner_by_size(run)))
    assert cells[0] == ["series", "n"]
    assert cells[1] == ["torch compile", "128"]
