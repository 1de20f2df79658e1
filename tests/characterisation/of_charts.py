"""Charts as facts: coordinates, error bars, markers and colours of each trace, lines and marks of the layout. No text of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from characterisation import adapter
from characterisation.common import (
    NIGHTS,
    RUNS,
    SHIPPED,
    opened,
    source,
    stored_runs,
)
from characterisation.facts import fixtures, numbers_of, plain, series
from characterisation.sampling import taken

_STYLE = ("color", "symbol", "size", "dash", "width", "shape", "colorscale", "opacity", "outliercolor", "pattern")


def _coordinates(value: Any, names: Sequence[str]) -> Any:
    """Numbers; a text becomes the number of its first occurrence, or the variant that it names."""
    values = numbers_of(value)
    if values is None:
        return plain(value) if isinstance(value, int | float) else None
    if values and isinstance(values[0], list):
        flat = [v for row in values for v in row]
        return {"rows": len(values), "values": _coordinates(flat, names)}
    order: dict[str, int] = {}
    told = [
        v if not isinstance(v, str) else _variant(v, names) or f"#{order.setdefault(v, len(order))}" for v in values
    ]
    return told if any(isinstance(v, str) for v in told) else series(told)


def _variant(text: str, names: Sequence[str]) -> str | None:
    """The variant that a trace's name begins with: what follows names a run, in text."""
    return max((n for n in names if text == n or text.startswith((f"{n} ", f"{n}<"))), key=len, default=None)


def _style(value: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key in _STYLE:
        if key not in value:
            continue
        inner = value[key]
        if isinstance(inner, Mapping) and "bdata" not in inner:
            found[key] = _style(inner)
        else:
            listed = numbers_of(inner)
            found[key] = plain(inner) if listed is None else series(listed)
    if "line" in value and isinstance(value["line"], Mapping):
        found["line"] = _style(value["line"])
    return found


def _trace(trace: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    found: dict[str, Any] = {"type": trace.get("type", "scatter")}
    if isinstance(trace.get("name"), str):
        found["variant"] = _variant(trace["name"], names)
    for key in ("mode", "orientation", "visible", "showlegend", "xaxis", "yaxis", "fill"):
        if key in trace:
            found[key] = plain(trace[key])
    for key in ("x", "y", "z", "x0", "y0", "dx", "dy", "base", "width", "offset"):
        if key in trace:
            found[key] = _coordinates(trace[key], names)
    for key in ("error_x", "error_y"):
        if key in trace:
            sides = ("array", "arrayminus")
            found[key] = {side: _coordinates(trace[key][side], names) for side in sides if side in trace[key]}
    for key in ("marker", "line"):
        if isinstance(trace.get(key), Mapping):
            found[key] = _style(trace[key])
    return found


def _layout(layout: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {"height": layout.get("height"), "barmode": layout.get("barmode")}
    for name, axis in layout.items():
        if name.startswith(("xaxis", "yaxis")):
            keys = ("type", "range", "tickvals", "domain", "autorange", "visible")
            found[name] = {k: _coordinates(axis[k], ()) or plain(axis[k]) for k in keys if k in axis}
    for group, keys in (
        ("shapes", ("type", "x0", "x1", "y0", "y1", "xref", "yref", "fillcolor", "line")),
        ("annotations", ("x", "y", "xref", "yref", "xshift", "yshift", "showarrow", "ax", "ay")),
    ):
        found[group] = [
            {k: _style(one[k]) if isinstance(one[k], Mapping) else plain(one[k]) for k in keys if k in one}
            for one in layout.get(group, ())
        ]
    return found


def chart(figure: Any, names: Sequence[str]) -> dict[str, Any]:
    """The facts of a figure; `names` are the variants that its traces may be called by."""
    return chart_of(figure.to_dict(), names)


def chart_of(made: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """The facts of a figure that is written as JSON."""
    return {"traces": [_trace(t, names) for t in made["data"]], "layout": _layout(made["layout"])}


def _some(items: Sequence[Any]) -> list[Any]:
    """First, middle and last."""
    return [items[i] for i in sorted({0, len(items) // 2, len(items) - 1})] if items else []


def names_in(run: Any) -> tuple[str, ...]:
    """What a trace may be called by: the variants, with underscores or with spaces."""
    return (*run.plan.variants, *(v.replace("_", " ") for v in run.plan.variants))


def of_run(run: Any, *, every_size: bool) -> Iterator[tuple[str, Any]]:
    """Every chart of one run, by name. `every_size`: charts of one size at each of them, else at three."""
    import kernelviz as kv

    names = names_in(run)
    for l2 in ("cold", "warm"):
        for name in ("latency_by_size", "bandwidth_by_size", "rate_by_size", "winner_by_size"):
            yield f"{name}/{l2}", chart(getattr(kv.plots, name)(run, headline=l2), names)
        problems = run.plan.problems if every_size else _some(run.plan.problems)
        for problem in problems:
            for name in ("time_by_variant", "rate_by_intensity"):
                yield f"{name}/{l2}/{problem.key}", chart(getattr(kv.plots, name)(run, problem, headline=l2), names)
    yield "other_times_by_size", chart(kv.plots.other_times_by_size(run), names)
    for problem in _some(run.plan.problems):
        timed = {r.variant: r.timing for r in run.results if r.problem == problem and r.timing}
        cold = {v: t.device_cold_s for v, t in timed.items() if t.device_cold_s}
        yield f"share_by_time/{problem.key}", chart(kv.plots.share_by_time(cold, problem.op), names)
        for variant, timing in list(timed.items())[:2]:
            for field in ("device_cold_s", "call_eager_s", adapter.BACK_TO_BACK):
                figure = getattr(timing, field)
                if figure is not None:
                    drawn = kv.plots.samples_by_order(figure, field, op=problem.op, variant=variant)
                    yield f"samples_by_order/{problem.key}/{variant}/{field}", chart(drawn, names)


def styles(ops: Mapping[str, Any]) -> dict[str, Any]:
    """Colour and marker of every variant of every op."""
    import kernelviz as kv

    found = {}
    for op in ops.values():
        for variant in op.variants:
            style = kv.plots.style_of(op.name, variant.name)
            fields = getattr(style, "__dataclass_fields__", None) or style.__struct_fields__
            found[f"{op.name}/{variant.name}"] = [plain(getattr(style, name)) for name in fields]
    return found


def charts_of_shipped() -> dict[str, Any]:
    return {name: dict(of_run(source(name), every_size=False)) for name in SHIPPED}


def charts_of_tests() -> dict[str, Any]:
    """Charts of planted runs, several runs in one, comparisons, trends, inspections, timelines, styles."""
    import kernelviz as kv

    found: dict[str, Any] = {name: dict(of_run(opened(name), every_size=False)) for name in taken("charts", RUNS[:4])}
    before, after = opened("before"), opened("after")
    names = tuple(n.replace("_", " ") for n in before.plan.variants)
    found["two_runs"] = {
        name: chart(getattr(kv.plots, name)([before, after]), names)
        for name in ("latency_by_size", "bandwidth_by_size", "rate_by_size", "time_by_variant", "rate_by_intensity")
    }
    for name in ("after", "after_wrong", "after_other_device"):
        compared = kv.compare(before, opened(name))
        found[f"compare/{name}"] = {
            "ratio_by_case": chart(kv.plots.ratio_by_case(compared), names),
            "shares_by_time": [chart(kv.plots.shares_by_time(compared, p), names) for p in compared.pairs[:3]],
        }
    for name in ("right", "wrong_tile"):
        made = adapter.decoded_inspection(fixtures()[name]["text"])
        found[f"inspection/{name}"] = [
            *(chart(kv.plots.share_by_element(e), ()) for e in made.errors),
            *(chart(kv.plots.elements_by_error(e), ()) for e in made.errors),
            *(chart(kv.plots.elements_by_value(t), ()) for t in made.tensors),
        ]
    found["device"] = device()
    found["timelines"] = [chart(kv.plots.marks_by_time(t), ()) for t in adapter.shipped_timelines()]
    found["styles"] = styles(adapter.catalogue())
    with stored_runs(NIGHTS) as bench:
        trends = kv.trends()
        found["trends"] = {
            case.variant: chart(kv.plots.time_by_run(case.trend, case.problem.op, case.variant), ()) for case in trends
        }
        for l2 in ("cold", "warm"):
            placed = adapter.placed(bench, ["h200-matmul", "h200-rmsnorm"], l2)
            found[f"rates_by_intensity/{l2}"] = chart(kv.plots.rates_by_intensity(placed), ())
    return found


def device() -> dict[str, Any]:
    """The page Device: what a GPU and a processor reported over twelve minutes, times of stored runs, alerts."""
    found: dict[str, Any] = {}
    for kind, seconds in (("cuda", (0, 1, 100, 720)), ("cpu", (0, 100))):
        for count in seconds:
            samples = [_reported(kind, second) for second in range(count)]
            found[f"reports/{kind}/{count}"] = chart(adapter.reports_by_time(samples, gpu=kind == "cuda"), ())
            for busy, growth in ((0.6, 2.0**30), (0.2, 1e9), (1.0, 1.0)):
                found[f"alerts/{kind}/{count}/{busy}/{growth}"] = adapter.alerts(samples, busy, growth)
    with stored_runs(("before", "after", "mixed", "night-00")) as bench:
        found["times_by_run"] = chart(adapter.times_by_run(bench, "cuda:0"), ())
    return found


def _reported(kind: str, second: int) -> dict[str, Any]:
    """A load that comes and goes, memory that grows; something is measured in every other minute."""
    load = (second % 40) / 40
    sample = {
        "at_s": 1_795_000_000.0 + second,
        "running": second // 60 % 2 == 1,
        "used_bytes": 4 * 10**9 + second * 10**7,
    }
    if kind == "cpu":
        return sample | {
            "busy_fraction": load,
            "total_bytes": 2**35,
            "sm_clock_hz": 2.6e9,
            "cores_fraction": [load, load / 2],
        }
    return sample | {
        "busy_fraction": load, "memory_busy_fraction": load / 2, "total_bytes": 15 * 10**10, "power_w": 120 + 480 * load,
        "sm_clock_hz": 1.98e9 - 2e8 * load, "memory_clock_hz": 3.2e9, "temperature_c": 34 + 20 * load,
        "to_device_bytes_per_s": 2.5e9 * load, "event_reasons": ["power cap"] if load > 0.9 else [],
    }  # fmt: skip


def charts_at_every_size() -> dict[str, Any]:
    return {name: dict(of_run(source(name), every_size=True)) for name in SHIPPED}
