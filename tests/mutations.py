"""Files of every format that is read, each damaged in one of several ways. A seed and a number always give the same file.

Number n has format n modulo the number of formats, and the kinds of damage of a format follow each other in the same way, so each
format has equally many files, and so has each kind of damage of a format. Half of the changed Parquet files and backups get a new
digest after the change, as if their writer had written them so; otherwise their digest alone would refuse them.
"""

from __future__ import annotations

import bz2
import copy
import gzip
import hashlib
import io
import json
import lzma
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from random import Random
from typing import Any

import earlier_runs
import msgspec
import peers
import sample_figures as figures
import sample_inspections as inspections
import sample_runs as samples
import sample_tunings as tunings

from kernelviz.bench import backup
from kernelviz.core.problem import Problem
from kernelviz.core.result import Block, Failure, Figure, Result
from kernelviz.core.run import Run
from kernelviz.formats import compact, document, encode, parquet

Path = tuple[Any, ...]
"""The keys from the root of JSON to a value."""
NUMBERS = (
    0,
    -1,
    1,
    2,
    7,
    2**31,
    2**53 + 1,
    2**63 - 1,
    2**63,
    2**64,
    -(2**63),
    10**30,
    10**400,
    0.5,
    -0.0,
    1e-12,
    1e9,
    1e24,
)
NUMBERS += (1e308, 5e-324, float("nan"), float("inf"), -3.5e-6, 4.2e-6)  # type: ignore[assignment]
LONG = "x" * 200_000
TEXTS = (
    "", "add", "rmsnorm", "torch_eager", "fp8", "kernelviz/2", "kernelviz/1", "aggregate", "int64", "ns", "inf", "-1", "1e999", "NaN",  # noqa: E501
    "../../etc/passwd", "<b>x</b>", "\x00", "\ud800", "\u202eabc", "=1+1", "BM/0/x:1", "9" * 5000, LONG, "2026-11-21T10:42:00+00:00",  # noqa: E501
    "0001-01-01T00:00:00+23:00", "9999-12-31T23:59:59-12:00", "cuda:0", "cpu", "cpu-sample", "finished", "running", "timing", "failure",  # noqa: E501
    "$x^2$ :red[y]", "a|b\nc", "{}", "%s {0}", "🙂" * 40,
)  # fmt: skip
DEPTHS = (30, 600, 1_100, 100_000)
"""Levels of nesting. Python's own reader gives up at about 1,000."""
DEEP = "@deep@"


@dataclass(frozen=True)
class Mutated:
    """A damaged file. `fields`: the fields that were changed, with [] for all elements of a list; empty for changed bytes."""

    number: int
    form: str
    damage: str
    data: bytes = field(repr=False)
    fields: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        return f"{self.number}.{self.form}"


def mutated(seed: int, number: int) -> Mutated:
    """File `number` of the series of that seed."""
    form, kinds = list(FORMATS.items())[number % len(FORMATS)]
    damage = list(kinds)[number // len(FORMATS) % len(kinds)]
    change = Change(Random(f"{seed} {number}"))
    return Mutated(number, form, damage, kinds[damage](change), frozenset(change.fields))


@dataclass
class Change:
    """The choices of one file, and the fields that it changes."""

    random: Random
    fields: set[str] = field(default_factory=set)

    def pick(self, of: Sequence[Any]) -> Any:
        return self.random.choice(of)

    def times(self) -> range:
        return range(self.pick((1, 1, 1, 2, 3)))

    def value(self, level: int = 0) -> Any:
        """Any value of JSON."""
        match self.random.randrange(8 if level < 2 else 4):
            case 0:
                return self.pick((None, True, False))
            case 1 | 4:
                return self.pick(NUMBERS)
            case 2 | 5:
                return self.pick(TEXTS)
            case 3:
                return self.random.uniform(-1, 1) * 10.0 ** self.random.randrange(-12, 13)
            case 6:
                return [self.value(level + 1) for _ in range(self.random.randrange(4))]
            case _:
                return {self.pick(TEXTS): self.value(level + 1) for _ in range(self.random.randrange(4))}


# Samples


@cache
def documents() -> tuple[bytes, ...]:
    """Small runs of version 2: right, wrong and failed cases; every figure at two sizes; a CPU; no result; tuned; other times."""
    mixed = samples.mixed()
    every = figures.run("every")
    of_cpu = samples.run(
        id="cpu", op="add", sizes=[{"n": 2**20}, {"n": 2**22}], dtype="fp32", device=samples.CPU, roofs=(),
        shares={"torch_eager": 0.9, "torch_compile": 0.8},
    )  # fmt: skip
    tuned = tunings.run()
    runs = (
        msgspec.structs.replace(mixed, results=mixed.results[:5]),
        msgspec.structs.replace(every, results=every.results[-6:]),
        of_cpu,
        msgspec.structs.replace(mixed, results=(), id="empty", status="cancelled"),
        msgspec.structs.replace(
            tuned, results=tuned.results[:7], plan=msgspec.structs.replace(tuned.plan, variants=tuned.plan.variants[:7])
        ),
        peers_run(),
    )
    return tuple(encode(small(run)) for run in runs)


def peers_run() -> Run:
    """A run that was imported from another tool, as this project writes it."""
    from read_here import read

    run = read(peers.gbench())[0]
    return msgspec.structs.replace(run, id="of-another-tool")


def small(run: Run) -> Run:
    """The run with only the first two samples of the first three blocks of each figure."""
    return msgspec.structs.replace(run, results=tuple(map(_small, run.results)))


def _small(result: Result) -> Result:
    timing = result.timing
    if timing is None:
        return result
    fewer = {name: _fewer(figure) for name, figure in timing.figures.items()}
    timing = msgspec.structs.replace(timing, **fewer)
    if isinstance(result.outcome, Failure):
        return msgspec.structs.replace(result, outcome=msgspec.structs.replace(result.outcome, timing=timing))
    return msgspec.structs.replace(result, outcome=timing)


def _fewer(figure: Figure) -> Figure:
    if not figure.blocks or not figure.samples:
        return figure
    step = figure.blocks[0].size
    chosen = tuple(s for i, s in enumerate(figure.samples[: 3 * step]) if i % step < 2)
    blocks: tuple[Block, ...] = tuple(msgspec.structs.replace(b, size=2) for b in figure.blocks[:3])
    return msgspec.structs.replace(figure, samples=chosen, blocks=blocks)


@cache
def older_documents() -> tuple[bytes, ...]:
    """Documents of version 1, with its sentences: three results of two runs that were recorded then."""
    values = []
    for name in ("h200-rmsnorm", "h200-add"):
        one = json.loads(gzip.decompress((earlier_runs.FOLDER / f"{name}.json.gz").read_bytes()))
        one["results"] = one["results"][:4]
        one["plan"]["problems"] = one["plan"]["problems"][:2]
        for result in one["results"]:
            outcome = result["outcome"]
            for figure in (outcome.get("timing") or outcome).values():
                if isinstance(figure, dict) and figure.get("blocks"):
                    steps = [b["size"] for b in figure["blocks"][:3]]
                    figure["samples"] = figure["samples"][: sum(steps)]
                    figure["blocks"] = figure["blocks"][:3]
        planned = [p["sizes"] for p in one["plan"]["problems"]]
        one["results"] = [r for r in one["results"] if r["problem"]["sizes"] in planned]
        notes = [
            "what tracing adds to it is not known",
            "warm: 3 of 30 blocks ran at a clock more than 1 % under the first",
        ]
        one["results"][0]["conditions"]["notes"] = notes
        one["results"][-1]["outcome"] = {
            "kind": "failure", "stage": "crash", "message": "CUDA error: misaligned address", "timing": None,
        }  # fmt: skip
        one.pop("digest", None)
        values.append(json.dumps(one).encode())
    return tuple(values)


@cache
def nvbench_files() -> tuple[bytes, ...]:
    """Two benchmarks in a file, so that each value is hit more often than in a file of five, and less is read and drawn."""
    whole = json.loads(peers.nvbench())
    for benchmark in whole["benchmarks"]:
        benchmark["states"] = benchmark["states"][:3]
    return tuple(json.dumps(whole | {"benchmarks": pair}).encode() for pair in pairwise(whole["benchmarks"]))


@cache
def google_benchmark_files() -> tuple[bytes, ...]:
    return tuple(json.dumps(json.loads(peers.gbench(name))).encode() for name in ("1", "repetitions"))


@cache
def kernel_tuner_files() -> tuple[bytes, ...]:
    """Caches of few configurations: whole numbers; texts, numbers and constants; failures in their three forms."""
    made = []
    for name, failures in (("cache", ()), ("mixed", ("InvalidConfig", "CompilationFailedConfig", 1e20))):
        whole = json.loads(peers.kernel_tuner(name))
        whole["cache"] = dict(list(whole["cache"].items())[:5])
        for entry, time in zip(whole["cache"].values(), failures, strict=False):
            entry["time"] = time
        made.append(json.dumps(whole).encode())
    return tuple(made)


@cache
def parquet_files() -> tuple[bytes, ...]:
    return tuple(parquet.encode(document.decode(one)) for one in documents())


@cache
def backups() -> tuple[bytes, ...]:
    """Backups as `backup.write` writes them: runs, one of them deleted, roofs, a selftest, an inspection and tunings; all of
    them of this machine's CPU, so that the pages about the machine show them. The second has only runs."""
    own = {"device": samples.CPU}
    environment = msgspec.structs.replace(samples.run([]).environment, **own)
    inspected = Problem(op="add", sizes={"n": 2**22}, dtype="fp32")
    lines: list[backup.Line] = [
        backup.RunLine(run=msgspec.Raw(documents()[2]), owner="somebody"),
        backup.RunLine(run=msgspec.Raw(documents()[0]), deleted_at="2026-11-22T10:00:00+00:00"),
        *(backup.RoofLine(device_uuid=samples.CPU.uuid, roof=roof) for roof in samples.H200_ROOFS[1:]),
        backup.SelftestLine(selftest=msgspec.structs.replace(figures.selftest(), environment=environment)),
        backup.InspectionLine(inspection=inspections.wrong_tile(inspected, "torch_compile", environment)),
        backup.TuningLine(tuning=tunings.tuning(device_uuid=samples.CPU.uuid)),
    ]
    older = [backup.RunLine(run=msgspec.Raw(older_documents()[0])), backup.RunLine(run=msgspec.Raw(documents()[4]))]
    return tuple(sealed_backup([_HEAD, *(msgspec.json.encode(line) for line in part)]) for part in (lines, older))


_HEAD = b'{"schema":"kernelviz-backup/2","kernelviz":"0.1.0","created_at":"2026-11-24T00:00:00+00:00"}'


def sealed_backup(lines: Sequence[bytes]) -> bytes:
    """The lines as a whole backup with an end that belongs to them."""
    body = b"".join(line + b"\n" for line in lines)
    end = {"kind": "end", "lines": len(lines) - 1, "sha256": hashlib.sha256(body).hexdigest()}
    return body + json.dumps(end).encode() + b"\n"


@cache
def every_sample() -> tuple[bytes, ...]:
    """What a file is spliced with."""
    return (
        *documents(), *older_documents(), *nvbench_files(), *google_benchmark_files(), *kernel_tuner_files(), *parquet_files(),
        *backups(),
        gzip.compress(backups()[0]),
    )  # fmt: skip


# Damage to bytes


def bytes_changed(change: Change, raw: bytes) -> bytes:
    data = bytearray(raw)
    for _ in change.times():
        at = change.random.randrange(len(data))
        data[at : at + change.pick((1, 1, 4))] = change.random.randbytes(change.pick((1, 1, 4)))
    return bytes(data)


def digits_changed(change: Change, raw: bytes) -> bytes:
    """Digits, letters and punctuation in place of others: more of these files can be read than of those with any bytes."""
    data = bytearray(raw)
    for _ in change.times():
        at = change.random.randrange(len(data))
        alike = [i for i in range(at, min(at + 200, len(data))) if chr(data[i]).isalnum()] or [at]
        data[change.pick(alike)] = ord(change.pick("0123456789e-.,x"))
    return bytes(data)


def bytes_removed(change: Change, raw: bytes) -> bytes:
    data = bytearray(raw)
    for _ in change.times():
        at = change.random.randrange(len(data))
        del data[at : at + change.pick((1, 2, 16, 300))]
    return bytes(data)


def bytes_inserted(change: Change, raw: bytes) -> bytes:
    data = bytearray(raw)
    for _ in change.times():
        at = change.random.randrange(len(data))
        data[at:at] = change.pick(
            (b"\x00", b" ", b"\n", b",", b"[", b"\xff\xfe", b"\xef\xbb\xbf", b"NaN", b"1e5", data[at : at + 300])
        )
    return bytes(data)


def cut_off(change: Change, raw: bytes) -> bytes:
    return raw[: change.random.randrange(len(raw))]


def spliced(change: Change, raw: bytes) -> bytes:
    """The beginning of a file with the end of another one."""
    other = change.pick(every_sample())
    return raw[: change.random.randrange(len(raw))] + other[change.random.randrange(len(other)) :]


def followed(change: Change, raw: bytes) -> bytes:
    """A file with something after its end or before its beginning."""
    more = change.pick((b" ", b"\n\n", b"\x00", b"{}", b"]", raw, change.random.randbytes(8)))
    return more + raw if change.random.random() < 0.3 else raw + more


BYTES: dict[str, Callable[[Change, bytes], bytes]] = {
    "bytes changed": bytes_changed,
    "digits changed": digits_changed,
    "bytes removed": bytes_removed,
    "bytes inserted": bytes_inserted,
    "cut off": cut_off,
    "spliced": spliced,
    "followed": followed,
}

# Damage to JSON


def places_in(node: Any, path: Path = ()) -> Iterator[Path]:
    """The path of every value below `node`; of a long list, its first three elements."""
    pairs = node.items() if isinstance(node, dict) else enumerate(node[:3]) if isinstance(node, list) else ()
    for key, below in pairs:
        yield (*path, key)
        yield from places_in(below, (*path, key))


@cache
def _places(raw: bytes) -> list[list[Path]]:
    """The places of the values of some JSON, in groups of equal fields, so that a field of many cases is not hit more often."""
    groups: dict[str, list[Path]] = {}
    for path in places_in(json.loads(raw)):
        groups.setdefault(_field(path), []).append(path)
    return list(groups.values())


def _field(path: Path) -> str:
    return ".".join("[]" if isinstance(key, int) else key for key in path)


def _damaged(change: Change, raw: bytes, damage: Callable[[Change, Any, Any], None], path: Path = ()) -> bytes:
    """The JSON with a few values damaged: `damage` gets the container and the key of each."""
    root = json.loads(raw)
    groups = [[p for p in group if p[: len(path)] == path] for group in _places(raw)]
    groups = [group for group in groups if group]
    for _ in change.times():
        target = change.pick(change.pick(groups))
        node = root
        try:
            for key in target[:-1]:
                node = node[key]
            node[target[-1]]
            damage(change, node, target[-1])
        except (LookupError, TypeError):  # an earlier change removed this value
            continue
        change.fields.add(_field(target))
    return _json(change, root)


def _json(change: Change, root: Any) -> bytes:
    text = json.dumps(root)
    if DEEP in text:
        depth, (start, end) = change.pick(DEPTHS), change.pick((("[", "]"), ('{"a":', "}")))
        text = text.replace(json.dumps(DEEP), start * depth + "1" + end * depth)
    return text.encode()


def another_value(change: Change, node: Any, key: Any) -> None:
    node[key] = change.value()


def another_number(change: Change, node: Any, key: Any) -> None:
    """A number of another size; of a value that holds numbers, all of them."""
    node[key] = _other_numbers(change, node[key])


def _other_numbers(change: Change, value: Any) -> Any:
    match value:
        case bool() | None | str():
            return value
        case int() | float():
            if change.random.random() < 0.5:
                return change.pick(NUMBERS)
            scale = change.pick((-1, 0, 1e-9, 1e-3, 0.5, 2, 1e3, 1e9, 1e18))
            scaled = value * (scale if abs(value) < 2**63 else 2)
            return int(scaled) if isinstance(value, int) else scaled
        case list():
            return [_other_numbers(change, one) for one in value]
        case _:
            return {name: _other_numbers(change, one) for name, one in value.items()}


def missing(change: Change, node: Any, key: Any) -> None:
    del node[key]


def twice(change: Change, node: Any, key: Any) -> None:
    """An element of a list again, or a value under a second key."""
    if isinstance(node, list):
        node.insert(key, copy.deepcopy(node[key]))
    else:
        node[f"{key}{change.pick(('2', ' ', ''))}"] = copy.deepcopy(node[key])


def renamed(change: Change, node: Any, key: Any) -> None:
    if isinstance(node, list):
        node.reverse()
    else:
        node[change.pick((key.upper(), key + "s", key[:-1], *TEXTS))] = node.pop(key)


def nested(change: Change, node: Any, key: Any) -> None:
    node[key] = DEEP


def exchanged(change: Change, node: Any, key: Any) -> None:
    """A value and another one beside it, each in the place of the other."""
    other = change.pick(list(node) if isinstance(node, dict) else range(len(node)))
    node[key], node[other] = node[other], node[key]


def text_of_value(change: Change, node: Any, key: Any) -> None:
    """A number as text, a text that is another, null as an empty object."""
    match node[key]:
        case str():
            node[key] = change.pick(TEXTS)
        case None:
            node[key] = change.pick(({}, [], "", 0))
        case value:
            node[key] = json.dumps(value)


JSON: dict[str, Callable[[Change, Any, Any], None]] = {
    "another value": another_value,
    "another number": another_number,
    "missing": missing,
    "twice": twice,
    "renamed": renamed,
    "nested": nested,
    "exchanged": exchanged,
    "another text": text_of_value,
}


def key_twice(change: Change, raw: bytes) -> bytes:
    """An object with the same key twice, which JSON allows and dictionaries do not have."""
    text = raw.decode()
    starts = [i for i, sign in enumerate(text) if sign == "{" and text[i + 1] == '"']
    at = change.pick(starts)
    name = text[at + 1 : text.index('"', at + 2) + 1]
    value = json.dumps(change.value())
    change.fields.add(f"{name} twice")
    return f"{text[: at + 1]}{name}:{value},{text[at + 1 :]}".encode()


def _of_json(samples_of: Callable[[], tuple[bytes, ...]]) -> dict[str, Callable[[Change], bytes]]:
    """Every kind of damage to a format that is JSON."""
    kinds: dict[str, Callable[[Change], bytes]] = {}
    for name, damage in JSON.items():
        kinds[name] = lambda change, d=damage: _damaged(change, change.pick(samples_of()), d)  # type: ignore[misc]
    for name, harm in (*BYTES.items(), ("key twice", key_twice)):
        kinds[name] = lambda change, h=harm: h(change, change.pick(samples_of()))  # type: ignore[misc]
    return kinds


# Damage to Parquet


def _of_parquet() -> dict[str, Callable[[Change], bytes]]:
    kinds: dict[str, Callable[[Change], bytes]] = {}
    for name, damage in JSON.items():
        kinds[f"run: {name}"] = lambda change, d=damage: _parquet_of_values(change, d)  # type: ignore[misc]
    for name, columns in COLUMNS.items():
        kinds[name] = lambda change, c=columns: _parquet_of_columns(change, c)  # type: ignore[misc]
    for name, harm in BYTES.items():
        kinds[name] = lambda change, h=harm: h(change, change.pick(parquet_files()))  # type: ignore[misc]
    return kinds


def _parquet_of_values(change: Change, damage: Callable[[Change, Any, Any], None]) -> bytes:
    """A run with damaged values, written as Parquet without a look at them; half of them with the digest of these values."""
    import pyarrow as pa

    values = json.loads(_damaged(change, change.pick(documents()), damage if damage is not nested else another_value))
    values.pop("digest", None)
    original = json.loads(documents()[0])
    if change.random.random() < 0.8:
        try:
            values["digest"] = parquet._digest(values)
        except (TypeError, ValueError, RecursionError):
            values["digest"] = original["digest"]
    results = values.pop("results", [])
    results = results if isinstance(results, list) else [results]
    samples_of = [parquet._without_samples(r) if isinstance(r, dict) and _has_figures(r) else {} for r in results]
    columns: dict[str, Any] = {"result": pa.array([json.dumps(r) for r in results], pa.string())}
    for figure in parquet.FIGURES:
        lists = [s.get(figure) for s in samples_of]
        try:
            columns[f"{figure}_samples"] = pa.array(lists, pa.list_(pa.float64()))
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            columns[f"{figure}_samples"] = pa.array([json.dumps(one) for one in lists], pa.string())
    table = pa.table(columns).replace_schema_metadata({b"kernelviz": json.dumps(values).encode()})
    return _written(table)


def _has_figures(result: dict[str, Any]) -> bool:
    timing = parquet._timing(result)
    return timing is not None and all(not timing.get(f) or isinstance(timing[f], dict) for f in parquet.FIGURES)


def _written(table: Any) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    out = pa.BufferOutputStream()
    pq.write_table(table, out, compression="zstd")
    return bytes(out.getvalue())


def _parquet_of_columns(change: Change, damage: Callable[[Change, Any], Any]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(pa.BufferReader(change.pick(parquet_files()[:3])))
    return _written(damage(change, table))


def column_removed(change: Change, table: Any) -> Any:
    name = change.pick(table.column_names)
    change.fields.add(f"column {name}")
    return table.drop_columns([name])


def column_of_another_type(change: Change, table: Any) -> Any:
    import pyarrow as pa

    name = change.pick([n for n in table.column_names if n == "result" or n.endswith("_samples")])
    change.fields.add(f"type of {name}")
    rows = table.num_rows
    other = change.pick((
        pa.array([1] * rows), pa.array([None] * rows), pa.array([b"\xff\xfe"] * rows), pa.array([[1.0, float("nan")]] * rows),
        pa.array([[[1.0]]] * rows), pa.array(["{}"] * rows), pa.array([[None, 1.0]] * rows, pa.list_(pa.float64())),
        pa.array(["[" * 5_000] * rows), pa.array([{"a": 1}] * rows), pa.array(["{}"] * rows).dictionary_encode(),
    ))  # fmt: skip
    return table.set_column(table.column_names.index(name), name, other)


def column_twice(change: Change, table: Any) -> Any:
    name = change.pick(table.column_names)
    change.fields.add(f"column {name} twice")
    return table.append_column(change.pick((name, "x", "", LONG)), table.column(name))


def rows_changed(change: Change, table: Any) -> Any:
    import pyarrow as pa

    order = list(range(table.num_rows))
    if change.random.random() < 0.5:
        change.random.shuffle(order)
    change.fields.add("rows")
    order = order[: change.random.randrange(len(order) + 1)] + [change.random.randrange(table.num_rows)] * change.pick(
        (0, 0, 1)
    )
    return table.take(pa.array(order, pa.int64()))


def samples_changed(change: Change, table: Any) -> Any:
    import pyarrow as pa

    name = change.pick([n for n in table.column_names if n.endswith("_samples")])
    change.fields.add(f"values of {name}")
    rows = [list(row) if row else row for row in table.column(name).to_pylist()]
    at = change.random.randrange(len(rows))
    rows[at] = change.pick(
        ([], None, [float("nan")], [1.0], [-1.0, 2.0], [1e308] * 6, [None], (rows[at] or [1e-6]) * 2)
    )
    return table.set_column(table.column_names.index(name), name, pa.array(rows, pa.list_(pa.float64())))


def metadata_changed(change: Change, table: Any) -> Any:
    metadata = dict(table.schema.metadata)
    name = change.pick(list(metadata))
    change.fields.add(f"metadata {name.decode()}")
    whole = metadata[name]
    metadata[name] = change.pick(
        (b"", b"{}", b"[]", b"null", b"[" * 5_000, b"\xff", bytes_changed(change, whole), cut_off(change, whole))
    )
    if change.random.random() < 0.2:
        del metadata[name]
    return table.replace_schema_metadata(metadata)


COLUMNS: dict[str, Callable[[Change, Any], Any]] = {
    "column removed": column_removed,
    "column of another type": column_of_another_type,
    "column twice": column_twice,
    "rows": rows_changed,
    "samples": samples_changed,
    "metadata": metadata_changed,
}

# Damage to backups


def _of_backups(pack: Callable[[bytes], bytes]) -> dict[str, Callable[[Change], bytes]]:
    kinds: dict[str, Callable[[Change], bytes]] = {}
    for name, damage in JSON.items():
        kinds[f"line: {name}"] = lambda change, d=damage: pack(_backup_of_values(change, d))  # type: ignore[misc]
    for name, lines in LINES.items():
        kinds[name] = lambda change, f=lines: pack(_backup_of_lines(change, f))  # type: ignore[misc]
    for name, harm in BYTES.items():
        kinds[name] = lambda change, h=harm: h(change, pack(change.pick(backups())))  # type: ignore[misc]
    return kinds


def _lines(raw: bytes) -> list[bytes]:
    return raw.splitlines()[:-1]


def _sealed_sometimes(change: Change, lines: Sequence[bytes], end: bytes) -> bytes:
    """With an end that belongs to the lines, or with the one that they had."""
    if change.random.random() < 0.8:
        return sealed_backup(lines)
    return b"".join(line + b"\n" for line in lines) + end


def _backup_of_values(change: Change, damage: Callable[[Change, Any, Any], None]) -> bytes:
    whole = change.pick((backups()[0], *backups()))
    lines = _lines(whole)
    kinds = [json.loads(line).get("kind", "head") for line in lines]
    kind = change.random.choices(*zip(*((k, n) for k, n in _HOW_OFTEN.items() if k in kinds), strict=True))[0]
    at = change.pick([i for i, one in enumerate(kinds) if one == kind])
    lines[at] = _damaged(change, lines[at], damage)
    return _sealed_sometimes(change, lines, whole.splitlines()[-1] + b"\n")


_HOW_OFTEN = {"inspection": 5, "selftest": 3, "tuning": 3, "roof": 2, "run": 2, "head": 1}
"""How often a line of each kind is damaged. Only backups have inspections, selftests and tunings, so these are hit more often."""


def _backup_of_lines(change: Change, damage: Callable[[Change, list[bytes]], None]) -> bytes:
    whole = change.pick(backups())
    lines = _lines(whole)
    damage(change, lines)
    return _sealed_sometimes(change, lines, whole.splitlines()[-1] + b"\n")


def line_removed(change: Change, lines: list[bytes]) -> None:
    del lines[change.random.randrange(len(lines))]


def line_twice(change: Change, lines: list[bytes]) -> None:
    at = change.random.randrange(len(lines))
    lines.insert(change.random.randrange(len(lines)), lines[at])


def lines_reordered(change: Change, lines: list[bytes]) -> None:
    first = change.pick((0, 1, 1, 1))
    moved = lines[first:]
    change.random.shuffle(moved)
    lines[first:] = moved


def line_damaged(change: Change, lines: list[bytes]) -> None:
    at = change.random.randrange(len(lines))
    lines[at] = change.pick(list(BYTES.values()))(change, lines[at]).replace(b"\n", b" ")


def line_of_another_kind(change: Change, lines: list[bytes]) -> None:
    at = change.random.randrange(1, len(lines))
    line = json.loads(lines[at])
    line["kind"] = change.pick(("run", "roof", "selftest", "inspection", "tuning", "end", "", None, 1))
    change.fields.add(f"kind of {at}")
    lines[at] = json.dumps(line).encode()


def line_of_another_backup(change: Change, lines: list[bytes]) -> None:
    lines.insert(change.random.randrange(len(lines) + 1), change.pick(_lines(change.pick(backups()))))


LINES: dict[str, Callable[[Change, list[bytes]], None]] = {
    "line removed": line_removed,
    "line twice": line_twice,
    "lines reordered": lines_reordered,
    "line damaged": line_damaged,
    "line of another kind": line_of_another_kind,
    "line of another backup": line_of_another_backup,
}


def _gzip_members(change: Change, raw: bytes) -> bytes:
    """A file in several members of gzip, one of which is damaged, missing, there twice, or not packed."""
    cuts = sorted(change.random.randrange(len(raw)) for _ in range(2))
    members = [gzip.compress(part, mtime=0) for part in (raw[: cuts[0]], raw[cuts[0] : cuts[1]], raw[cuts[1] :])]
    at = change.random.randrange(3)
    match change.random.randrange(6):
        case 0:
            del members[at]
        case 1:
            members.insert(at, members[at])
        case 2:
            members[at] = change.pick(list(BYTES.values()))(change, members[at])
        case 3:
            members[at] = gzip.decompress(members[at])
        case 4:
            members[at] = members[at][:-8] + change.random.randbytes(8)
        case _:
            pass  # several members are a file like one
    return b"".join(members)


# Packed documents, which an upload refuses


def _of_packed() -> dict[str, Callable[[Change], bytes]]:
    kinds: dict[str, Callable[[Change], bytes]] = {}
    for name, pack in PACKERS.items():
        kinds[f"{name}, whole"] = lambda change, p=pack: p(change.pick(documents()))  # type: ignore[misc]
        kinds[f"{name}, damaged"] = lambda change, p=pack: change.pick(list(BYTES.values()))(  # type: ignore[misc]
            change, p(change.pick(documents()))
        )
    return kinds


def _zip(raw: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        file.writestr(zipfile.ZipInfo("run.json"), raw)
    return out.getvalue()


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": lambda raw: gzip.compress(raw, mtime=0),
    "zip": _zip,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "compact": lambda raw: compact.encode(document.decode(raw)),
}


def _packed_backup(raw: bytes) -> bytes:
    return gzip.compress(raw, compresslevel=1, mtime=0)


FORMATS: dict[str, dict[str, Callable[[Change], bytes]]] = {
    "kernelviz-2.json": _of_json(documents),
    "kernelviz-1.json": _of_json(older_documents),
    "parquet": _of_parquet(),
    "nvbench.json": _of_json(nvbench_files),
    "google-benchmark.json": _of_json(google_benchmark_files),
    "kernel-tuner.json": _of_json(kernel_tuner_files),
    "backup.jsonl": _of_backups(lambda raw: raw),
    "backup.jsonl.gz": _of_backups(_packed_backup)
    | {"members of gzip": lambda change: _gzip_members(change, change.pick(backups()))},
    "packed": _of_packed(),
}
"""By format: every kind of damage, as a function that makes a file."""
