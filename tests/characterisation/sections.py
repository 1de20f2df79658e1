"""The sections of facts: each a function without arguments that returns plain values. `FAST` ones are compared by a test."""

from __future__ import annotations

import contextlib
import csv
import gzip
import hashlib
import io
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from characterisation import adapter, charts
from characterisation.facts import HERE, LONGEST, columns, fixtures, flat, plain, series, shape

SHIPPED = ("h200-add", "h200-copy", "h200-matmul", "h200-rmsnorm", "h200-scale", "h200-softmax")
RUNS = (
    "mixed", "cpu", "whole", "limits", "quality_burst", "quality_sustained", "quality_unknown", "before", "after",
    "after_wrong", "after_other_device", "after_sustained", "tuning-1",
)  # fmt: skip
NIGHTS = tuple(f"night-{night:02}" for night in range(14))
TEXT_COLUMNS = ("trust", "failure_message", "reason", "evidence", "configuration", "note", "message")
"""Columns that hold text for people, even where it happens to be one word."""


# Helpers


def outcome(call: Callable[[], Any]) -> Any:
    """What a call returns, or its error as a type with data. An error that is none of kernelviz's own is a fact as well."""
    try:
        return call()
    except Exception as error:
        return adapter.error_facts(error)


def command(*arguments: str) -> tuple[int, str]:
    """Exit code and standard output of a command in this process."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        try:
            code = adapter.main()(list(arguments))
        except SystemExit as end:
            code = int(end.code or 0)
    return code, out.buffer.getvalue().decode()  # type: ignore[attr-defined]


def told(*arguments: str) -> dict[str, Any]:
    """Exit code of a command and the rows that it prints as JSON."""
    code, out = command(*arguments, "--json")
    try:
        value = json.loads(out)
    except ValueError:
        return {"exit": code, "json": None}
    if isinstance(value, list):
        return {"exit": code, "rows": columns(value, TEXT_COLUMNS)}
    return {"exit": code, "json": without_text(value)}


def without_text(node: Any, key: str = "") -> Any:
    """The value without the text of fields that hold text; rows become columns."""
    if isinstance(node, Mapping):
        return {k: without_text(v, k) for k, v in node.items()}
    if isinstance(node, list) and node and all(isinstance(v, Mapping) for v in node):
        return columns(node, TEXT_COLUMNS)
    return plain(None if node in (None, "") else "<text>") if key in TEXT_COLUMNS else plain(node)


def opened(name: str) -> Any:
    """A run of the fixtures, as the API reads it from a file."""
    import kernelviz as kv

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.json"
        path.write_text(fixtures()[name]["text"])
        return kv.load(path)


def source(name: str) -> Any:
    return adapter.shipped_run(name) if name in SHIPPED else opened(name)


# Runs


def of_run(run: Any) -> dict[str, Any]:
    """Everything that is derived from one run, without charts and files."""
    results = list(run.results)
    found: dict[str, Any] = {
        "fastest": run.fastest,
        "frame": columns(run.to_frame().to_dict("records"), TEXT_COLUMNS),
        "failures": sorted(run.failures),
        "seal": adapter.seal(json.dumps(run.document).encode()),
        "occupancies": [adapter.occupancies(r, run) for r in results],
        "spreads": columns([{"case": r.case.key, **adapter.spreads(r)} for r in results[:12]]),
        "samples": {k: series(list(v)) for k, v in run.samples().to_dict("list").items() if k != "variant"},
    }
    for l2 in ("cold", "warm"):
        qualities = [adapter.quality(r, l2, run.method.clock) for r in results]
        found[l2] = {
            "rows": columns(adapter.rows(run, l2)),
            "summary": plain(adapter.summary(run, l2)),
            "winners": columns(run.winners(l2).to_dict("records"), TEXT_COLUMNS),
            "quality": columns(
                [{"case": r.case.key, **(q or {"level": None})} for r, q in zip(results, qualities, strict=True)]
            ),
            "limiters": columns([{"case": r.case.key, **adapter.limiter(r, run, l2)} for r in results]),
        }
    return found


def runs_of_tests() -> dict[str, Any]:
    return {name: of_run(opened(name)) for name in RUNS}


def shipped() -> dict[str, Any]:
    return {name: of_run(source(name)) for name in SHIPPED}


# Charts


def charts_of_shipped() -> dict[str, Any]:
    return {name: dict(charts.of_run(source(name), every_size=False)) for name in SHIPPED}


def charts_of_tests() -> dict[str, Any]:
    """Charts of planted runs, several runs in one, comparisons, trends, inspections, timelines, styles."""
    import kernelviz as kv

    found: dict[str, Any] = {name: dict(charts.of_run(opened(name), every_size=False)) for name in RUNS[:7]}
    before, after = opened("before"), opened("after")
    names = tuple(n.replace("_", " ") for n in before.plan.variants)
    found["two_runs"] = {
        name: charts.chart(getattr(kv.plots, name)([before, after]), names)
        for name in ("latency_by_size", "bandwidth_by_size", "rate_by_size", "time_by_variant", "rate_by_intensity")
    }
    for name in ("after", "after_wrong", "after_other_device"):
        compared = kv.compare(before, opened(name))
        found[f"compare/{name}"] = {
            "ratio_by_case": charts.chart(kv.plots.ratio_by_case(compared), names),
            "shares_by_time": [charts.chart(kv.plots.shares_by_time(compared, p), names) for p in compared.pairs[:3]],
        }
    for name in ("right", "wrong_tile"):
        made = adapter.decoded_inspection(fixtures()[name]["text"])
        found[f"inspection/{name}"] = [
            *(charts.chart(kv.plots.share_by_element(e), ()) for e in made.errors),
            *(charts.chart(kv.plots.elements_by_error(e), ()) for e in made.errors),
            *(charts.chart(kv.plots.elements_by_value(t), ()) for t in made.tensors),
        ]
    found["timelines"] = [charts.chart(kv.plots.marks_by_time(t), ()) for t in adapter.shipped_timelines()]
    found["styles"] = charts.styles(adapter.catalogue())
    with stored_runs(NIGHTS) as bench:
        trends = kv.trends()
        found["trends"] = {
            case.variant: charts.chart(kv.plots.time_by_run(case.trend, case.problem.op, case.variant), ())
            for case in trends
        }
        for l2 in ("cold", "warm"):
            placed = adapter.placed(bench, ["h200-matmul", "h200-rmsnorm"], l2)
            found[f"rates_by_intensity/{l2}"] = charts.chart(kv.plots.rates_by_intensity(placed), ())
    return found


# Files


def _json_numbers(node: Any) -> Any:
    """Numbers and names of a file; text goes by the rule of `plain`, long lists of numbers as a digest."""
    if isinstance(node, Mapping):
        return {key: _json_numbers(value) for key, value in node.items()}
    if isinstance(node, list):
        if len(node) > LONGEST and all(isinstance(v, Mapping) for v in node):
            return {key: long_column(values) for key, values in columns(list(map(_one_level, node))).items()}
        if node and all(isinstance(v, int | float) for v in node):
            return series(node)
        return [_json_numbers(v) for v in node]
    return plain(node)


def _one_level(node: Mapping[str, Any]) -> dict[str, Any]:
    """Nested fields side by side: ``{"a": {"b": 1}}`` as ``{"a/b": 1}``; a list is one long column of its own."""
    return dict(flat(node))


def long_column(values: Sequence[Any]) -> Any:
    """A column of many rows: numbers as a digest, names as how often each occurs where there are few, else as their hash."""
    if all(v is None or isinstance(v, int | float) for v in values):
        return series([v for v in values if v is not None])
    told = [str(v) for v in values]
    counts = Counter(told)
    if len(counts) <= LONGEST:
        return dict(sorted(counts.items()))
    return hashlib.sha256("\n".join(told).encode()).hexdigest()[:16]


def _parquet(path: Path) -> dict[str, Any]:
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    found: dict[str, Any] = {"metadata": sorted(k.decode() for k in table.schema.metadata or {})}
    for field in table.schema:
        values = table.column(field.name).to_pylist()
        if field.name == "result" or field.name in TEXT_COLUMNS:
            values = [v is not None for v in values]
        elif str(field.type).startswith("list"):
            values = [None if v is None else series(v) for v in values]
        found[f"column {field.name}"] = {"type": str(field.type), "values": plain(values)}
    return found


def _csv(path: Path) -> dict[str, Any]:
    with path.open(newline="") as file:
        found = list(csv.DictReader(file))
    return columns(found, TEXT_COLUMNS)


def _cells(line: str) -> list[Any]:
    """The numbers of a Markdown table's row without its last cells (quality in text), and how many cells there are."""
    cells = re.split(r"(?<!\\)\|", line)[1:-1]
    return [len(cells), *(re.findall(r"[-+]?\d[\d,.]*", cell) for cell in cells[:-2])]


def _markdown(path: Path) -> list[Any]:
    rows = [line for line in path.read_text().splitlines() if line.startswith("|")]
    return [_cells(line) for line in rows[2:]]


def exported(run: Any) -> dict[str, Any]:
    """What each format writes of a run, and whether what is read again is the same."""
    import kernelviz as kv

    readers: dict[str, Callable[[Path], Any]] = {
        "csv": _csv,
        "parquet": _parquet,
        "md": _markdown,
        "gbench": lambda path: _json_numbers(json.loads(path.read_text())),
        "nvbench": lambda path: _json_numbers(json.loads(path.read_text())),
        "json": lambda path: {
            "shape": sorted(shape(json.loads(path.read_text()))),
            "seal": adapter.seal(path.read_bytes()),
        },
        "html": lambda path: {"scripts": len(re.findall("<script", path.read_text()))},
    }
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, read in readers.items():
            path = run.save(Path(folder) / f"run.{name}", to=name)
            found[name] = read(path)
        for name in ("json", "parquet"):
            again = kv.load(Path(folder) / f"run.{name}")
            found[name] = {"facts": found[name], "read_again": again.results == run.results and again.plan == run.plan}
    return found


def files() -> dict[str, Any]:
    """Files written of planted runs and of one shipped run; files of other tools read."""
    import kernelviz as kv

    found: dict[str, Any] = {name: exported(source(name)) for name in ("mixed", "whole", "limits", "tuning-1")}
    found["h200-matmul"] = exported(source("h200-matmul"))
    with tempfile.TemporaryDirectory() as folder:
        for name in ("nvbench", "gbench_1", "gbench_repetitions"):
            path = Path(folder) / "file.json"
            path.write_text(fixtures()[name]["text"])
            read = kv.load_all(path)
            found[f"read/{name}"] = [
                {
                    "op": run.plan.op,
                    "frame": columns(run.to_frame().to_dict("records"), TEXT_COLUMNS),
                    "chart": charts.chart(kv.plots.other_times_by_size(run), run.plan.variants),
                }
                for run in read
            ]
    return found


def wire() -> dict[str, Any]:
    """The names on the wire: the schema, and whether the digests of documents of 8fa93f3 still verify."""
    import kernelviz as kv

    schema = adapter.schema()
    kept: dict[str, Any] = {}
    for name, one in schema.get("$defs", {}).items():
        kept[name] = {
            "required": sorted(one.get("required", [])),
            "properties": {k: _types(v) for k, v in sorted(one.get("properties", {}).items())},
            "enum": one.get("enum"),
        }
    top = {key: schema.get(key) for key in ("$ref", "required", "type") if key in schema}
    seals = {name: adapter.seal(one["text"].encode()) for name, one in fixtures().items() if one["kind"] == "run"}
    return {
        "schema": kept | {"top": top},
        "seals_of_saved_documents": seals,
        "report_attributes": sorted(n for n in dir(kv.Report) if not n.startswith("_")),
        "public_names": sorted(kv.__all__),
        "plots": sorted(kv.plots.__all__),
    }


def _types(node: Any) -> Any:
    """A schema's node without titles, descriptions and defaults' text."""
    if isinstance(node, Mapping):
        return {k: _types(v) for k, v in node.items() if k not in ("title", "description")}
    return [_types(v) for v in node] if isinstance(node, list) else plain(node)


# Comparisons, trends, tunings, ladders


@contextlib.contextmanager
def stored_runs(names: Sequence[str]) -> Iterator[Any]:
    """A bench with an H200 that has these runs, taken in from files as `kernelviz import` does."""
    device = opened("before").environment.device
    with tempfile.TemporaryDirectory() as folder, adapter.bench_with(Path(folder), (device,)) as bench:
        for name in names:
            path = Path(folder) / "document.json"
            path.write_text(fixtures()[name]["text"])
            code, _ = command("import", str(path))
            assert code == 0, f"the document {name} was not taken in"
        yield bench


def comparisons() -> dict[str, Any]:
    found: dict[str, Any] = {}
    with stored_runs(("before", "after", "after_wrong", "after_other_device", "after_sustained", "mixed")):
        for b in ("after", "after_wrong", "after_other_device", "after_sustained", "mixed", "h200-rmsnorm", "before"):
            for l2 in ("cold", "warm"):
                found[f"before {b} {l2}"] = told("compare", "before", b, "--l2", l2)
        for limit in ("0%", "2%", "6%", "50%"):
            for b in ("after", "after_wrong"):
                found[f"before {b} {limit}"] = command("compare", "before", b, "--fail-slower-than", limit)[0]
        for variant_a, variant_b in itertools.permutations(("torch_eager", "triton_persistent"), 2):
            pair = ("--variant-a", variant_a, "--variant-b", variant_b)
            found[f"before {variant_a} {variant_b}"] = told("compare", "before", "before", *pair)
        for run, one, other in (
            ("h200-softmax", "torch_eager", "triton_persistent"),
            ("h200-add", "torch_eager", "cuda_vec16"),
            ("h200-matmul", "torch_eager", "cuda_naive"),
            ("h200-copy", "torch_eager", "triton_block"),
            ("h200-rmsnorm", "composite_eager", "torch_compile"),
        ):
            pair = ("--variant-a", one, "--variant-b", other)
            found[f"{run} {one} {other}"] = told("compare", run, run, *pair)
            found[f"{run} {other} {one} exit"] = command("compare", run, run, "--variant-a", other, "--variant-b", one)[
                0
            ]
        for a, b in itertools.permutations(SHIPPED[:3], 2):
            found[f"{a} {b}"] = told("compare", a, b)
    return found


def stores() -> dict[str, Any]:
    """What the commands say of a store: runs, trends, regressions, tunings, rooflines."""
    import kernelviz as kv

    found: dict[str, Any] = {}
    with stored_runs((*NIGHTS, "mixed", "tuning-1")) as bench:
        for name, arguments in {
            "trends": ("trends",),
            "trends of an op": ("trends", "rmsnorm"),
            "trends of a variant": ("trends", "rmsnorm", "--variant", "triton_persistent"),
            "trends warm": ("trends", "--l2", "warm"),
            "regressions": ("trends", "--regressions"),
            "runs": ("runs",),
            "runs found": ("runs", "--search", "night"),
            "runs shipped": ("runs", "--shipped"),
            "roofline of shipped": ("roofline", *SHIPPED),
            "roofline warm": ("roofline", *SHIPPED, "--level", "l2"),
            "roofline of the data sheet": ("roofline", *SHIPPED, "--roofs", "datasheet"),
            "roofline of a precision": ("roofline", "h200-matmul", "--precision", "bf16"),
            "roofline of planted": ("roofline", "mixed", "night-00"),
        }.items():
            found[name] = told(*arguments)
        found["runs"].get("rows", {}).pop("created_at", None)
        trends = kv.trends()
        found["changes"] = [
            [case.variant, [(c.index, c.ratio, len(c.because)) for c in case.trend.changes]] for case in trends
        ]
        made = adapter.tuning_report(bench, "tuning-1")
        found["tuning"] = {
            "best": made.best,
            "kept": made.kept is not None,
            "failures": sorted(len(v) for v in made.failures.values()),
            "frame": columns(made.to_frame().to_dict("records"), TEXT_COLUMNS),
            "record": without_text(made.record),
        }
        found["tunings keep"] = command("tunings", "keep", "tuning-1")[0]
        found["tunings"] = told("tunings")
        found["delete"] = [
            command("runs", "delete", "--yes", "night-03")[0],
            told("runs", "--deleted")["exit"],
            command("runs", "restore", "night-03")[0],
            command("runs", "rename", "night-03", "a name")[0],
            command("runs", "delete", "--yes", "h200-add")[0],
        ]
    return plain(found)


def library_comparison() -> dict[str, Any]:
    """Own kernels against libraries, from the runs that docs/kernels.md is made of."""
    file = str(Path("docs") / "h200-ladders.jsonl.gz")
    found = told("ladders", file)
    code, out = command("ladders", file, "--markdown")
    rows = [line for line in out.splitlines() if line.startswith("|")]
    cells = [re.findall(r"\d[\d,.]*", line) for line in rows[2:]]
    return found | {"markdown_exit": code, "markdown": cells}


# The catalogue


def catalogue() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, op in adapter.catalogue().items():
        sizes = [dict.fromkeys(op.axis_names, n) for n in (32, 257, 4096)]
        one: dict[str, Any] = {
            "axes": [[a.name, a.default, a.cpu_default] for a in op.axes],
            "dtypes": op.dtypes,
            "computes": dict(op.computes),
            "directions": op.directions,
            "baseline": op.baseline,
            "slab": op.slab,
            "presets": {p.name: dict(p.sizes) for p in op.presets},
            "inputs": [[t.name, t.axes, t.dtype, t.below, t.ids, t.data] for t in op.inputs],
            "outputs": [[t.name, t.axes, t.dtype] for t in op.outputs],
            "variants": [adapter.variant_facts(v) for v in op.variants],
        }
        refused: dict[str, str] = {}
        costs: dict[str, Any] = {}
        for dtype, direction in itertools.product(op.dtypes, op.directions):
            for compute in op.computes.get(dtype) or (None,):
                problems = [outcome(partial(op.problem, s, dtype, compute=compute, direction=direction)) for s in sizes]
                key = " ".join(filter(None, (dtype, compute, direction)))
                if isinstance(problems[0], dict):
                    refused[key] = str(problems[0])
                    continue
                variants = op.of(problems[1]).variants
                refused[key] = "".join("x" if v.refuses(problems[1]) else "." for v in variants)
                for problem in problems:
                    made = outcome(partial(op.cost_of, problem))
                    if isinstance(made, dict):
                        costs[problem.key] = made
                        continue
                    costs[problem.key] = [
                        made.work_flop,
                        made.read_bytes,
                        made.written_bytes,
                        op.tensor_bytes(problem),
                        op.needed_bytes(problem),
                    ]
        found[name] = plain(one) | {"refuses": refused, "costs": costs}
    return found


# Commands


def commands() -> dict[str, Any]:
    """Every command with its options, and the exit code of its help."""

    def options(one: Any) -> list[Any]:
        return [
            [sorted(p.opts), sorted(p.secondary_opts), p.param_type_name, p.required, p.multiple or p.nargs != 1]
            for p in one.params
        ]

    def walk(one: Any, path: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
        yield " ".join(path), {"options": options(one), "help": command(*path, "--help")[0]}
        for name, inner in sorted(getattr(one, "commands", {}).items()):
            yield from walk(inner, (*path, name))

    found = dict(walk(adapter.command_tree(), ()))
    listed = json.loads(command("ops", "--json", "--device", "cpu")[1])
    return found | {"no command": command()[0], "version": command("--version")[0], "ops --json": sorted(shape(listed))}


# Refusals

BAD_COMMANDS = (HERE / "bad_commands.txt").read_text().splitlines()


def refusals() -> dict[str, Any]:
    """Bad input: exit codes of commands, errors of the API as types with data, files, documents, addresses, sizes."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        found: dict[str, Any] = {"commands": {line: command(*line.split())[0] for line in BAD_COMMANDS}}
        found["api"] = _refused_calls()
        found["files"] = _refused_files(Path(folder))
    found["documents"] = mutated_documents()
    found["sizes"] = _sizes()
    found["addresses"] = _addresses()
    return plain(found)


def _refused_calls() -> dict[str, Any]:
    import kernelviz as kv

    shown = adapter.shipped_run("h200-add")
    calls: dict[str, Callable[[], Any]] = {
        "run op": lambda: kv.run("addd"),
        "run variant": lambda: kv.run("add", variants=["triton_blokc"]),
        "run axis": lambda: kv.run("add", sizes={"x": 3}),
        "run size": lambda: kv.run("add", sizes={"n": "2^x"}),
        "run size 0": lambda: kv.run("add", sizes={"n": 0}),
        "run size float": lambda: kv.run("add", sizes={"n": 1.5}),  # type: ignore[dict-item]
        "run size bytes": lambda: kv.run("add", sizes={"n": b"12"}),  # type: ignore[dict-item]
        "run budget": lambda: kv.run("add", budget_s=0),
        "run budget nan": lambda: kv.run("add", budget_s=float("nan")),
        "run clock": lambda: kv.run("add", sizes={"n": 4}, clock="sustain"),  # type: ignore[arg-type]
        "run figures": lambda: kv.run("add", sizes={"n": 4}, figures=["hot"]),  # type: ignore[list-item]
        "run dtype": lambda: kv.run("add", dtype="bf61"),
        "run compute": lambda: kv.run("matmul", dtype="fp32", compute="tf23"),
        "run direction": lambda: kv.run("add", direction="sideways"),
        "run data": lambda: kv.run("add", data="zeroes"),
        "run sorted": lambda: kv.run("add", data="sorted"),
        "run device": lambda: kv.run("add", device="cuda:7"),
        "run preset": lambda: kv.run("matmul", preset="llama-3-8"),
        "run baseline": lambda: kv.run("add", variants=["torch_eager"], baseline="torch_eagre"),
        "run plugin": lambda: kv.run("add", plugins=["no_such.py"]),
        "load id": lambda: kv.load("no-such-run"),
        "load file": lambda: kv.load("no-such.json"),
        "load folder": lambda: kv.load("./"),
        "resume": lambda: kv.resume("no-such-run"),
        "resume_tuning": lambda: kv.resume_tuning("h200-add"),
        "tune": lambda: kv.tune("add", "torch_eager", sizes={"n": 64}),
        "tune sizes": lambda: kv.tune("add", "triton_tuned", sizes={"n": "64,128"}),
        "inspect": lambda: kv.inspect("add", "torch_eagre"),
        "inspect sizes": lambda: kv.inspect("add", "torch_eager", sizes={"n": "64,128"}),
        "selftest": lambda: kv.selftest("cuda:9"),
        "roofline run": lambda: kv.roofline("no-such-run"),
        "roofline level": lambda: kv.roofline("h200-add", level="l3"),
        "roofline roofs": lambda: kv.roofline("h200-add", roofs="mine"),
        "roofline precision": lambda: kv.roofline("h200-add", precision="fp7"),
        "roofline variant": lambda: kv.roofline("h200-add", variant="torch_eagre"),
        "compare itself": lambda: kv.compare("h200-add", "h200-add"),
        "compare run": lambda: kv.compare("h200-add", "no-such-run"),
        "compare variant": lambda: kv.compare("h200-add", "h200-add", variant_a="torch_eagre"),
        "compare l2": lambda: kv.compare("h200-add", "h200-copy", l2="luke"),
        "regress": lambda: kv.regress("no-such-run"),
        "trends op": lambda: kv.trends("addd"),
        "trends device": lambda: kv.trends(device="cuda:9"),
        "trends l2": lambda: kv.trends(l2="luke"),
        "ladders": lambda: kv.ladders("no-such-run"),
        "winners": lambda: shown.winners("luke"),
        "samples": lambda: shown.samples("hot_s"),
        "save": lambda: shown.save("x.odt", to="odt"),
        "history": lambda: kv.history().delete("h200-add"),
        "history rename": lambda: kv.history().rename("no-such-run", "x"),
    }
    return {name: outcome(call) for name, call in calls.items()}


def _refused_files(folder: Path) -> dict[str, Any]:
    """Files that are none: by `kv.load_all` and by `kernelviz import`."""
    import kernelviz as kv

    text = fixtures()["mixed"]["text"]
    other, theirs = fixtures()["nvbench"]["text"], fixtures()["gbench_1"]["text"]
    contents: dict[str, bytes] = {
        "empty": b"",
        "text": b"hello",
        "binary": bytes(range(256)),
        "list": b"[]",
        "object": b"{}",
        "null": b"null",
        "nan": b'{"schema": NaN}',
        "deep": b"[" * 5000,
        "schema": json.dumps(json.loads(text) | {"schema": "kernelviz/999"}).encode(),
        "another schema": json.dumps(json.loads(text) | {"schema": "elsewhere/1"}).encode(),
        "cut": text.encode()[: len(text) // 2],
        "twice": text.encode() * 2,
        "bom": b"\xef\xbb\xbf" + text.encode(),
        "utf-16": text.encode("utf-16"),
        "packed": gzip.compress(text.encode()),
        "edited": text.replace('"estimate":', '"estimate":1', 1).encode(),
        "no digest": json.dumps({k: v for k, v in json.loads(text).items() if k != "digest"}).encode(),
        "nvbench cut": other.encode()[: len(other) // 2],
        "gbench cut": theirs.encode()[: len(theirs) // 2],
        "gbench without benchmarks": b'{"context": {}, "benchmarks": []}',
        "parquet": b"PAR1" + bytes(64) + b"PAR1",
    }
    found = {}
    for name, data in contents.items():
        path = folder / "file"
        path.write_bytes(data)
        read = outcome(lambda p=path: [[run.id, len(run.results)] for run in kv.load_all(p)])
        found[name] = {"load": read, "seal": outcome(lambda d=data: adapter.seal(d))}
    return found


MUTATIONS: dict[str, Any] = {"null": None, "negative": -1, "text": "x", "list": [], "object": {}, "large": 2**70}


def mutated_documents() -> dict[str, Any]:
    """A document with one value replaced, left out or doubled, for each field of it: is it opened, or where is it refused?

    The field is the first of its path; `=` in the answer stands for that very place.
    """
    import kernelviz as kv

    whole = json.loads(fixtures()["whole"]["text"])
    whole["results"] = whole["results"][:3]
    for result in whole["results"]:  # a short document is read quickly
        for figure in result["outcome"].values():
            if isinstance(figure, dict) and figure.get("blocks"):
                size = figure["blocks"][0]["size"]
                figure["blocks"], figure["samples"] = figure["blocks"][:1], figure["samples"][:size]
    places: dict[str, list[Any]] = {}

    def walk(node: Any, path: list[Any], name: str) -> None:
        if name and name not in places and not name.endswith("samples[]"):
            places[name] = path
        if isinstance(node, dict):
            for key, inner in node.items():
                walk(inner, [*path, key], f"{name}.{key}")
        elif isinstance(node, list):
            for index, inner in enumerate(node):
                walk(inner, [*path, index], f"{name}[]")

    walk(whole, [], "")
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "document.json"
        for name, path in places.items():
            parent = whole
            for key in path[:-1]:
                parent = parent[key]
            kept = parent[path[-1]]
            own = "$" + "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path)
            answers = []
            for how in (*MUTATIONS, "left out"):
                if how == "left out":
                    del parent[path[-1]]
                else:
                    parent[path[-1]] = MUTATIONS[how]
                file.write_text(json.dumps(whole))
                said = outcome(lambda: "opened" if kv.load_all(file) else "empty")
                if isinstance(said, dict):
                    where = said.get("path", "")
                    said = f"{said['error']}:{'=' if where == own else where}"
                answers.append(said)
                if how == "left out" and isinstance(parent, list):
                    parent.insert(path[-1], kept)
                else:
                    parent[path[-1]] = kept
            found[name] = answers
    return found


SIZES = (
    "4096", "2^12", "2^10..2^14", "64,128", "128..1024:128", "2^27/n", "m*2", "2^-1", "1..0", "0", "-1", "", " 7 ", "1e3", "2**5",
    "2^10..", "..5", "a", "n", "m", "2^63", "2^64", "9" * 30, "1,2,1", "5:2", "1..10:0", "2^4..2^2", "(3)", "3+4",
    "__import__('os')",
)  # fmt: skip


def _sizes() -> dict[str, Any]:
    texts = {text: {"m": text, "n": "1024"} for text in SIZES}
    return {text: outcome(lambda t=given: adapter.sizes(("m", "n"), t)) for text, given in texts.items()}


ADDRESSES = (
    "", "op=rmsnrom", "op=add&dtype=bf61", "op=add&variants=torch_eagre", "op=add&n=2^x", "op=add&n=-5", "budget=much",
    "budget=nan", "budget=9999", "clock=sustain", "energy=maybe", "energy=yes", "device=cuda:7", "device=cpu", "data=zeroes",
    "data=sorted", "op=embedding&data=sorted", "op=matmul&preset=llama-3-8", "op=matmul&preset=llama-3-8b",
    "op=matmul&preset=llama-3-8b&m=7", "op=matmul&dtype=fp32&compute=tf23", "op=matmul&dtype=fp32&compute=tf32",
    "op=add&compute=tf32", "baseline=torch_compil", "varaints=torch_eager", "direction=backward", "op=softmax&direction=backward",
    "op=add&direction=backward", "op=add&variants=torch_eager,nonsense&n=2^20,2^21&budget=nope",
    "op=add&variants=triton_tuned[block=64,warps=4]", "op=add&variants=", "run=abc", "show=x&against=y&l2=warm&tab=z", "op=",
)  # fmt: skip


def _addresses() -> dict[str, Any]:
    """Addresses of the page Bench on a machine with an H200 and a processor; of every op its own default written and read."""
    devices = [opened(name).environment.device for name in ("before", "cpu")]
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder, adapter.bench_with(Path(folder), devices) as bench:
        for query in (*ADDRESSES, *(f"op={op}" for op in adapter.catalogue())):
            params = dict(part.partition("=")[::2] for part in query.split("&") if part)
            first = adapter.link_read(params, bench)
            again = adapter.link_read(first["written"], bench)
            found[query] = first | {"reads_the_same": again == {"written": first["written"], "complaints": []}}
    return found


# Planted faults, measured on this machine's processor

TESTS = Path(__file__).parents[1]


def measured(*arguments: str, timeout_s: float = 300.0) -> tuple[int, Any]:
    """A command in a process of its own: exit code and what it printed as JSON."""
    done = subprocess.run(
        [sys.executable, "-m", "kernelviz", *arguments, "--json"],
        capture_output=True, text=True, timeout=timeout_s, check=False, env=os.environ | {"CUDA_VISIBLE_DEVICES": ""},
    )  # fmt: skip
    try:
        return done.returncode, json.loads(done.stdout)
    except ValueError:
        return done.returncode, None


def outcomes(document: Any) -> dict[str, Any]:
    """Of each case of a document: its stage, whether it is timed and ranked, and what the check found that no clock decides."""
    import kernelviz as kv

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.json"
        path.write_text(json.dumps(document))
        run = kv.load(path)
    found = {}
    table = {row["case"]: row for row in adapter.rows(run, "cold")}
    for result in document["results"]:
        stage, checked = result["outcome"].get("stage"), result.get("accuracy")
        row = next(r for r in table.values() if r["case"].endswith(f"| {result['variant']}"))
        found[result["variant"]] = {
            "stage": stage,
            "ranked": row["estimate_s"] is not None,
            "wrong_time": row["wrong_s"] is not None,
            "accuracy": None if checked is None else {k: checked.get(k) for k in ("passed", "not_finite", "unwritten")},
            "configuration": result.get("configuration"),
            "message": "<text>" if result["outcome"].get("message") else None,
        }
    return {
        "cases": found,
        "status": document.get("status"),
        "excluded": (adapter.summary(run, "cold") or {}).get("excluded"),
    }


PLANTED = (
    "honest", "runs_out_of_memory", "writes_nothing", "is_wrong", "remembers", "changes_its_input", "adds_in_place",
    "has_another_shape", "raises_in_bind", "computes_in_half", "compiles_in_every_call", "sleeps_on_the_host", "aborts",
)  # fmt: skip
"""Variants of tests/planted.py. `hangs` and `takes_long` wait for limits of minutes that no command line sets."""


def planted() -> dict[str, Any]:
    """Planted faults through `kernelviz run`, `inspect` and `tune`."""
    found: dict[str, Any] = {}

    def run(name: str, op: str, file: str, variants: Sequence[str], *more: str) -> None:
        code, document = measured(
            "run", op, "--with", str(TESTS / file), "--variants", ",".join(variants), "--device", "cpu", "--figures", "cold",
            "--budget-s", "0.02", *more,
        )  # fmt: skip
        found[name] = {"exit": code} | (outcomes(document) if document else {"cases": None})

    run("all", "add", "planted.py", ("torch_eager", *PLANTED), "--size", "n=4096")
    run("right ones", "add", "planted.py", ("torch_eager", "honest", "adds_in_place"), "--size", "n=4096")
    run("only wrong", "add", "planted.py", ("is_wrong",), "--size", "n=4096")
    run("not tried", "add", "planted.py", ("honest", "triton_block"), "--size", "n=4096")
    softmax = ("torch_eager", "forgets_the_last_tile", "spoils_a_row", "stores_columns")
    run("softmax", "softmax", "planted_wrong.py", softmax, "--size", "m=64", "--size", "n=1024")
    for variant in softmax[1:]:
        code, made = measured(
            "inspect", "softmax", "--with", str(TESTS / "planted_wrong.py"), "--variant", variant,
            "--size", "m=64", "--size", "n=1024", "--device", "cpu",
        )  # fmt: skip
        found[f"inspect {variant}"] = {"exit": code, "shape": sorted(shape(made)), "errors": _errors(made)}
    code, made = measured(
        "tune", "add", "in_blocks", "--with", str(TESTS / "planted_tuning.py"), "--size", "n=512", "--device", "cpu",
    )  # fmt: skip
    counts = ("tried", "failed", "refused", "cancelled", "planned", "space")
    found["tune"] = {
        "exit": code,
        "shape": sorted(shape(made)),
        **{k: made.get(k) for k in counts if k in (made or {})},
    }
    code, made = measured(
        "tune", "add", "never_right", "--with", str(TESTS / "planted_tuning.py"), "--size", "n=512", "--device", "cpu",
    )  # fmt: skip
    found["tune never_right"] = {"exit": code, **{k: made.get(k) for k in counts if k in (made or {})}}
    for name, text in PLUGINS.items():
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / f"{name}.py"
            file.write_text(text)
            code, document = measured(
                "run", "add", "--with", str(file), "--size", "n=64", "--device", "cpu", "--budget-s", "0.02"
            )
            found[f"plug-in {name}"] = {"exit": code, "document": document is not None}
    return plain(found)


def _errors(made: Any) -> Any:
    """Where an inspection found errors: counts and boxes, no values that a processor's rounding decides."""
    keys = ("name", "elements", "wrong", "not_finite", "unwritten", "first_wrong", "last_wrong")
    return [{key: one.get(key) for key in keys} for one in (made or {}).get("errors", [])]


PLUGINS = {
    "half": "from kernelviz.ops import variant\nhalf(",
    "empty": "",
    "raises": "raise RuntimeError('no')",
    "no_op": "from kernelviz.ops import variant\n@variant(backend='torch')\ndef mine(x, y):\n    'Mine.'\n",
    "unknown_op": "from kernelviz.ops import variant\n@variant(op='addd', backend='torch')\ndef mine(x, y):\n    'Mine.'\n",
    "taken": "from kernelviz.ops import variant\n@variant(op='add', backend='torch')\ndef torch_eager(x, y):\n    'Mine.'\n",
    "no_docstring": "from kernelviz.ops import variant\n@variant(op='add', backend='torch')\ndef mine(x, y):\n    pass\n",
}
"""Plug-ins that cannot be used, by what is wrong with them."""


def charts_at_every_size() -> dict[str, Any]:
    return {name: dict(charts.of_run(source(name), every_size=True)) for name in SHIPPED}


def files_of_shipped() -> dict[str, Any]:
    return {name: exported(source(name)) for name in SHIPPED if name != "h200-matmul"}


FAST: dict[str, Callable[[], Any]] = {
    "catalogue": catalogue,
    "charts": charts_of_tests,
    "commands": commands,
    "comparisons": comparisons,
    "files": files,
    "library_comparison": library_comparison,
    "refusals": refusals,
    "runs": runs_of_tests,
    "stores": stores,
    "wire": wire,
}
FULL: dict[str, Callable[[], Any]] = {
    "shipped": shipped,
    "shipped_charts": charts_at_every_size,
    "shipped_files": files_of_shipped,
    "planted": planted,
}
