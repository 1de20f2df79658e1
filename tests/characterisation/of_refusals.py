"""Facts of bad input: which error, of which field, with which exit code."""

from __future__ import annotations

import contextlib
import gzip
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from characterisation import adapter
from characterisation.common import (
    command,
    opened,
    outcome,
)
from characterisation.facts import HERE, fixtures, plain
from characterisation.sampling import taken

BAD_COMMANDS = (HERE / "bad_commands.txt").read_text().splitlines()


def refusals() -> dict[str, Any]:
    """Bad input: exit codes of commands, errors of the API as types with data, files, documents, addresses, sizes."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        lines = taken("refusals/commands", BAD_COMMANDS)
        found: dict[str, Any] = {"commands": {line: command(*line.split())[0] for line in lines}}
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
    return {name: outcome(calls[name]) for name in taken("refusals/api", calls)}


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
    for name in taken("refusals/files", contents):
        data = contents[name]
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
        for name in taken("refusals/documents", places):
            path = places[name]
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
        for query in taken("refusals/addresses", (*ADDRESSES, *(f"op={op}" for op in adapter.catalogue()))):
            params = dict(part.partition("=")[::2] for part in query.split("&") if part)
            first = adapter.link_read(params, bench)
            again = adapter.link_read(first["written"], bench)
            found[query] = first | {"reads_the_same": again == {"written": first["written"], "complaints": []}}
    return found
