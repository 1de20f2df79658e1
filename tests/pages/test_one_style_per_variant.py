"""Each variant has one colour and one marker in everything that a page shows of it, also with several plug-ins."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import count
from typing import Any

import pytest
import rehearsed_bench as rehearsed
import sample_runs as samples
from open_page import charts, open_page

import kernelviz.bench
from kernelviz.bench.card import card
from kernelviz.core import Run
from kernelviz.metrics.sketch import sketch
from kernelviz.ops import catalogue
from kernelviz.plots.marker_images import shape, svg
from kernelviz.plots.sketch_image import thumbnail
from kernelviz.plots.variant_styles import Style, set_plugin_variants, style_of, styles_of
from kernelviz.text import format_variant

OP = "add"


def alike(count_of: int, first_letter: str) -> list[str]:
    """Names whose styles are the same as long as each is the only variant of a plug-in."""
    names: dict[Style, list[str]] = {}
    for number in count():
        name = f"{first_letter}_{number}"
        found = names.setdefault(style_of(OP, name), [])
        found.append(name)
        if len(found) == count_of:
            return found
    raise AssertionError


@pytest.fixture
def plugins() -> Iterator[list[str]]:
    """The variants of the server's plug-ins."""
    names = alike(3, "mine")
    set_plugin_variants({OP: names})
    yield names
    set_plugin_variants({})


def run_of(names: list[str], **facts: Any) -> Run:
    return samples.run(
        op=OP, sizes=[{"n": 2**e} for e in (20, 22, 24)], dtype="fp32",
        shares={"torch_eager": 0.5, **{name: 0.6 + place / 50 for place, name in enumerate(names)}}, **facts,
    )  # fmt: skip


def test_card_thumbnail_charts_lists_and_form_agree(plugins: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The form offers three plug-in variants, of which the run has two, and two of a plug-in that this server does not have."""
    absent = [name for name in alike(4, "a") if name not in plugins][:2]
    variants = [*plugins[1:], *absent]
    run, second = run_of(variants, id="near"), run_of([plugins[0], absent[0]], id="far")
    op = catalogue()[OP]
    own = tuple(replace(op.variants[0], name=name) for name in plugins)
    ops = {**catalogue(), OP: op.plus(own)}
    bench = rehearsed.RehearsedBench((samples.H200,), roofs=samples.H200_ROOFS, stored=(run, second), ops=lambda: ops)
    monkeypatch.setattr(kernelviz.bench, "current", lambda: bench)
    styles = {name: styles_of(OP, (), run.plan.variants)[name] for name in run.plan.variants}
    assert len({s.marker for s in styles.values()}) == len(styles) == 5

    for address in ({"run": "near"}, {"run": "near", "with": "far"}, {"run": "near", "hide": absent[0]}):
        test = open_page(address, state={"shown_popover": True})
        hidden = address.get("hide")
        figures = {chart.key: chart.figure for chart in charts(test)}
        visible = {name: style for name, style in styles.items() if name != hidden}
        assert styles_of_lines(figures["by_size"], visible) == visible
        assert styles_of_lines(figures["roofline"], visible) == visible
        assert styles_of_bars(figures["bars"], visible) == visible
        lists = "\n".join(str(one.value) for one in test.markdown)
        assert marks(lists, visible) == {name: svg(style) for name, style in visible.items()}
        pills = "\n".join(one.content for one in test.button_group(key="variants").proto.options)
        here = {name: svg(style) for name, style in styles.items() if name in (*plugins, "torch_eager")}
        assert marks(pills, here) == here
        chosen = "\n".join(one.content for one in test.button_group(key="shown").proto.options)
        rest = {name: svg(style) for name, style in styles.items() if name != "torch_eager"}
        assert marks(chosen, rest) == rest

    every = {name: shape(style) for name, style in styles.items()}
    picture = card(bench, run)
    assert legend(picture, every) == every
    assert line_ends(picture) == list(every.values())
    part = card(bench, run, variants=[name for name in variants if name != absent[0]])
    assert legend(part, every) == {name: drawn for name, drawn in every.items() if name != absent[0]}
    small = thumbnail(OP, sketch(run))
    assert line_ends(small) == list(every.values())


def test_the_style_of_a_servers_plug_in_is_that_of_every_run(plugins: list[str]) -> None:
    alone = {name: style_of(OP, name) for name in plugins}
    assert len(set(alone.values())) == len(plugins)
    for others in (["a"], ["zz", "b"], alike(3, "c"), plugins):
        for beside in ((), others):
            styles = styles_of(OP, (*plugins, *others), beside)
            assert {name: styles[name] for name in plugins} == alone
            assert len(set(styles.values())) == len(styles)


def test_a_second_run_changes_no_style_of_the_first() -> None:
    first, second = alike(4, "b")[2:], alike(4, "b")[:2]
    of_first = styles_of(OP, first)
    both = styles_of(OP, (*first, *second), first)
    assert {name: both[name] for name in first} == of_first
    assert len(set(both.values())) == 4


def styles_of_lines(figure: Mapping[str, Any], names: Mapping[str, Style]) -> dict[str, Style]:
    shown = {format_variant(name): name for name in names}
    return {
        shown[label_of(trace)]: Style(first(trace["marker"]["color"]), trace["marker"]["symbol"])
        for trace in reversed(figure["data"])
        if label_of(trace) in shown
    }


def styles_of_bars(figure: Mapping[str, Any], names: Mapping[str, Style]) -> dict[str, Style]:
    found = {}
    for name in names:
        label = format_variant(name)
        bar = next(t for t in figure["data"] if t["type"] == "bar" and label_of(t) == label)
        marker = next(t for t in figure["data"] if t["type"] == "scatter" and t["y"] == bar["y"])["marker"]
        assert first(marker["color"]) == first(bar["marker"]["color"])
        found[name] = Style(first(marker["color"]), marker["symbol"])
    return found


def label_of(trace: Mapping[str, Any]) -> str:
    """The name of a trace without the run, which follows it where there are two runs."""
    return str(trace.get("name", "")).partition(" · ")[0]


def first(value: Any) -> Any:
    return value[0] if isinstance(value, list) else value


def marks(text: str, names: Mapping[str, Any]) -> dict[str, str]:
    """The pictures before these names, the same one wherever a name has one."""
    found = {}
    for name in names:
        pattern = rf"base64,([A-Za-z0-9+/=]+)\) (?:\*\*)?{re.escape(format_variant(name))}(?:\*\*|\n|$| )"
        (picture,) = set(re.findall(pattern, text.replace("\\", "")))
        found[name] = base64.b64decode(picture).decode()
    return found


def line_ends(picture: str) -> list[str]:
    """The markers at the ends of the lines of a small chart."""
    return re.findall(r'scale\(\.6\)">(<[^>]*>)', picture)


def legend(picture: str, names: Mapping[str, str]) -> dict[str, str]:
    """The marker before each name in the legend of a card."""
    found = dict(re.findall(r"<g [^>]*>(<[^>]*>)</g><text [^>]*>([^<]*)</text>", picture))
    by_label = {label: drawn for drawn, label in found.items()}
    return {name: by_label[format_variant(name)] for name in names if format_variant(name) in by_label}
