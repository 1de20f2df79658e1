"""Files that are small or well-formed at first sight and stand for very much: memory, time, columns, rows, nesting.

    python tests/formats/bombs.py [--scale 0.25] [--turns 3 --turn 1] [GROUP...]

makes the bombs of the groups (json, gbench, kernel-tuner, nvbench, parquet, kvz, backup) and reads each as an upload is read.
It prints one line of JSON for each: how long reading took, the peak memory of the processes of its group that read, and why the
file was refused. With a scale, the files and the memory of a reader are so much smaller. tests/formats/test_bombs.py checks the
lines."""

from __future__ import annotations

import argparse
import gzip
import io
import itertools
import json
import lzma
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

sys.path.insert(0, str(Path(__file__).parents[2]))

from kernelviz import formats
from kernelviz.bench import backup
from kernelviz.core import DocumentError, Run
from kernelviz.formats import compact, document, reading_process, shipped_runs
from kernelviz.formats.limited_process import MEMORY_FACTOR

MB = 2**20
SCALE = "KERNELVIZ_BOMBS"
Bomb = Callable[[], Iterable[bytes]]


def scaled(number: int) -> int:
    return round(number * float(os.environ.get(SCALE, "1")))


def _run() -> Run:
    return shipped_runs.load(next(name for name in shipped_runs.names() if name.endswith("rmsnorm")))


def _repeated(start: bytes, item: bytes, most_bytes: int, end: bytes) -> Iterator[bytes]:
    """`start`, as many copies of `item` as have so many bytes, and `end`, in pieces."""
    yield start
    piece = item * max(1, MB // 4 // len(item))
    for _ in range(max(1, scaled(most_bytes) // len(piece))):
        yield piece
    yield end


def _numbered(start: bytes, item: bytes, count: int, end: bytes) -> Iterator[bytes]:
    """`start`, `item` with a number in it so many times, separated by commas, and `end`."""
    yield start
    count = scaled(count)
    numbers = iter(range(count))
    while chunk := list(itertools.islice(numbers, 10_000)):
        yield b",".join(item % number for number in chunk)
        yield b"," if chunk[-1] < count - 1 else b""
    yield end


def _document(path: tuple[str | int, ...], item: bytes, most_bytes: int, version: int = 2) -> Bomb:
    """A recorded run in which the list at that path holds very many items."""

    def pieces() -> Iterator[bytes]:
        values = document.values_of(_run()) | {"schema": f"kernelviz/{version}"}
        place: Any = values
        for name in path[:-1]:
            place = place[name]
        place[path[-1]] = ["@"]
        start, _, end = msgspec.json.encode(values).partition(b'["@"]')
        yield from _repeated(start + b"[", item + b",", most_bytes, item + b"]" + end)

    return pieces


def _json(start: str, item: str, most_bytes: int, end: str) -> Bomb:
    return lambda: _repeated(start.encode(), item.encode(), most_bytes, end.encode())


def _counted(start: str, item: str, count: int, end: str = "]}") -> Bomb:
    return lambda: _numbered(start.encode(), item.encode(), count, end.encode())


def _parquet(make: Callable[[], object], **options: object) -> Bomb:
    def pieces() -> Iterator[bytes]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        whole = formats.export_named("parquet").encode(_run())
        metadata = pq.read_schema(pa.BufferReader(whole)).metadata
        table = make()
        assert isinstance(table, pa.Table)
        out = io.BytesIO()
        own = table.schema.metadata or metadata
        pq.write_table(table.replace_schema_metadata(own), out, **{"compression": "zstd"} | options)
        yield out.getvalue()

    return pieces


def _table(
    columns: Callable[[], dict[str, object]], metadata: Callable[[], bytes] | None = None
) -> Callable[[], object]:
    def make() -> object:
        import pyarrow as pa

        return pa.table(columns()).replace_schema_metadata({b"kernelviz": metadata()} if metadata else None)

    return make


def _samples(count: int, rows: int) -> Callable[[], dict[str, object]]:
    def columns() -> dict[str, object]:
        import pyarrow as pa

        one = pa.array([[1.0] * count], pa.list_(pa.float64()))
        return {"result": ["{}"] * scaled(rows), "device_cold_s_samples": pa.concat_arrays([one] * scaled(rows))}

    return columns


def _packed(lines: Callable[[], Iterable[bytes]]) -> Bomb:
    """A packed backup with these lines after its first."""

    def pieces() -> Iterator[bytes]:
        out = io.BytesIO()
        with gzip.GzipFile(fileobj=out, mode="wb", compresslevel=1) as file:
            file.write(HEAD)
            for piece in lines():
                file.write(piece)
        yield out.getvalue()

    return pieces


def _compact(head: Bomb | None = None, columns: Bomb | None = None) -> Bomb:
    """A recorded run in the compact form with another head, or with other columns."""

    def pieces() -> Iterator[bytes]:
        data = compact.encode(_run())
        end = 8 + int.from_bytes(data[4:8], "little")
        packed, body = data[8:end], data[end:]
        if head is not None:
            packed = _lzma(head(), lzma.LZMACompressor(preset=0))
        if columns is not None:
            filters = [{"id": lzma.FILTER_LZMA2, "preset": 0}]
            body = _lzma(columns(), lzma.LZMACompressor(format=lzma.FORMAT_RAW, filters=filters))
        yield data[:4] + len(packed).to_bytes(4, "little") + packed + body

    return pieces


def _lzma(pieces: Iterable[bytes], packer: lzma.LZMACompressor) -> bytes:
    return b"".join([*map(packer.compress, pieces), packer.flush()])


HEAD = b'{"schema":"kernelviz-backup/2","kernelviz":"0.1.0","created_at":"2026-11-24T00:00:00+00:00"}\n'
DEEP = 1_000_000
GBENCH = '{"context":{},"benchmarks":['
CACHE = '{"tune_params_keys":["b"],"tune_params":{"b":[1]},"cache":{'
VALUES = '{"cache":{"1":{"b":1,"time":1}},"tune_params_keys":["b"],"tune_params":{"b":['
NVBENCH = '{"devices":[{"id":0}],"benchmarks":['
STATES = NVBENCH + '{"name":"b","states":['

BOMBS: dict[str, Bomb] = {
    # documents of kernelviz
    "json: lists in an unknown field": _json('{"schema":"kernelviz/2","x":[', "[],", 40 * MB, "[]]}"),
    "json: nesting": lambda: [b'{"schema":"kernelviz/2","x":' + b"[" * DEEP + b"]" * DEEP + b"}"],
    "json: nesting of objects": lambda: [b'{"schema":"kernelviz/2","x":' + b'{"a":' * DEEP + b"1" + b"}" * DEEP + b"}"],
    "json: keys": _counted('{"schema":"kernelviz/2",', '"k%d":1', 4_000_000, "}"),
    "json: samples": _document(("results", 0, "outcome", "device_cold_s", "samples"), b"1", 30 * MB),
    "json: blocks": _document(("results", 0, "outcome", "device_cold_s", "blocks"), b'{"size":1,"started_s":1.0}', 60 * MB),
    "json: results of nothing": _document(("results",), b"{}", 20 * MB),
    "json: variants": _document(("plan", "variants"), b'""', 30 * MB),
    "json: variants of one letter": _document(("plan", "variants"), b'"x"', 60 * MB),
    "json: kernels": _document(("results", 0, "kernels"), b'{"name":"k"}', 60 * MB),
    "json: huge whole number": lambda: [b'{"schema":"kernelviz/2","x":' + b"9" * scaled(20 * MB) + b"}"],
    "json: huge size": lambda: [
        formats.encode(_run()).replace(b'"n":4096', b'"n":' + b"9" * (2 * MB), 1)
    ],
    "json: string of 100 MB": lambda: _repeated(b'{"schema":"kernelviz/2","title":"', b"a", 100 * MB, b'"}'),
    "json: schema of 100 MB": lambda: _repeated(b'{"schema":"', b"a", 100 * MB, b'"}'),
    "json: version 1, lists": _json('{"schema":"kernelviz/1","x":[', "[],", 40 * MB, "[]]}"),
    "json: results of nothing, version 1": _document(("results",), b"{}", 40 * MB, version=1),
    "json: roofs": _document(("environment", "roofs"), b'{"name":"copy"}', 60 * MB),
    "json: problems": _document(("plan", "problems"), b'{"op":"x","sizes":{"n":1},"dtype":"x"}', 120 * MB),
    "json: version 1, results": _json('{"schema":"kernelviz/1","results":[', "{},", 40 * MB, "{}]}"),
    "json: nothing but brackets": lambda: _repeated(b"", b"[", 60 * MB, b""),
    "json: white space": lambda: _repeated(b"", b" ", 160 * MB - MB, b"{"),
    # other tools
    "gbench: benchmarks": _counted(GBENCH, '{"name":"a/%d","real_time":1,"time_unit":"ms"}', 1_000_000),
    "gbench: benchmarks of nothing": _json(GBENCH, '{"name":"a"},', 50 * MB, '{"name":"a"}]}'),
    "gbench: runs": _counted(GBENCH, '{"name":"a/x%d:3","real_time":1,"time_unit":"ms"}', 90_000),
    "gbench: caches": _json('{"benchmarks":[],"context":{"caches":[', "{},", 40 * MB, "{}]}}"),
    "gbench: lists beside NaN": _json('{"context":{},"a":NaN,"x":[', "[],", 50 * MB, "[]]}"),
    "gbench: counters": _counted('{"context":{},"benchmarks":[{"name":"a",', '"c%d":1', 3_000_000, "}]}"),
    "gbench: one long name": lambda: _repeated(b'{"context":{},"benchmarks":[{"real_time":1,"name":"', b"a/", 50 * MB, b'"}]}'),
    "kernel-tuner: configurations": _counted(CACHE, '"%d":{"b":1,"time":1}', 1_000_000, "}}"),
    "kernel-tuner: objects": _counted(CACHE + '"1":{"b":1,"time":1,"x":{', '"k%d":{}', 3_000_000, "}}}}"),
    "kernel-tuner: not closed": _counted(CACHE, '"%d":{"b":1,"time":1}', 1_000_000, ',"cut":{"b'),
    "kernel-tuner: texts without an end": lambda: _repeated(CACHE.encode() + b'"a":{"b":1},"', b'\\"', 30 * MB, b""),
    "kernel-tuner: values": _json(VALUES, "1,", 30 * MB, "1]}}"),
    "nvbench: states": _counted(STATES, '{"axis_values":[{"name":"n","type":"int64","value":"%d"}]}', 800_000, "]}]}"),
    "nvbench: states of nothing": _json(STATES, "{},", 50 * MB, "{}]}]}"),
    "nvbench: benchmarks": _json(NVBENCH, '{"name":"b","states":null},', 50 * MB, '{"name":"b","states":null}]}'),
    "nvbench: summaries": _json(STATES + '{"summaries":[', "{},", 50 * MB, "{}]}]}]}"),
    "nvbench: devices": _json('{"benchmarks":[],"devices":[', '{"id":0},', 50 * MB, '{"id":0}]}'),
    # Parquet
    "parquet: repeated strings": _parquet(_table(lambda: {"result": ["x" * 100_000] * scaled(20_000)})),
    "parquet: strings of a dictionary": _parquet(_table(lambda: {"result": ["x" * MB] * scaled(2_000)}), use_dictionary=True),
    "parquet: samples": _parquet(_table(_samples(100_000, 1_500))),
    "parquet: empty samples": _parquet(_table(_samples(0, 99_000))),
    "parquet: columns": _parquet(_table(lambda: {"result": ["{}"]} | {f"c{i}": [1] for i in range(scaled(60_000))})),
    "parquet: rows": _parquet(_table(lambda: {"result": ["{}"] * 1_000_000})),
    "parquet: groups of one row": _parquet(_table(lambda: {"result": ["{}"] * scaled(20_000)}), row_group_size=1),
    "parquet: nested results": _parquet(_table(lambda: {"result": ["[" * 100_000] * 1_000})),
    "parquet: lists as the run": _parquet(
        _table(lambda: {"result": ["{}"]}, lambda: b'{"a":[' + b"[]," * scaled(15 * MB) + b"[]]}")
    ),
    # compact runs
    "kvz: head of blanks": _compact(lambda: _repeated(b"", b" ", 700 * MB, b"{")),
    "kvz: lists in the head": _compact(_json('{"run":{},"figures":{},"columns":[],"x":[', "[],", 150 * MB, "[]]}")),
    "kvz: lists in its run": _compact(
        _json('{"figures":{},"columns":[],"run":{"schema":"kernelviz/2","x":[', "[],", 150 * MB, "[]]}}")
    ),
    "kvz: figures": _compact(_json('{"run":{},"columns":[],"figures":{"loop_s":[', "1,", 150 * MB, "1]}}")),
    "kvz: columns of zeros": _compact(columns=lambda: _repeated(b"", b"\0", 700 * MB, b"")),
    # backups
    "backup: a line of zeros": _packed(lambda: _repeated(b"", b"\0", 700 * MB, b"\n")),
    "backup: a line of samples": _packed(lambda: _repeated(b'{"kind":"run","run":{"x":[', b"1,", 500 * MB, b"1]}}\n")),
    "backup: a line of blanks": _packed(lambda: _repeated(b'{"kind":"run",', b" ", 500 * MB, b'"run":{}}\n')),
    "backup: many empty lines": _packed(lambda: _repeated(b"", b"\n", 20 * MB, b"")),
    "backup: a line of lists": _packed(lambda: _repeated(b'{"kind":"roof","x":[', b"[],", 300 * MB, b"[]]}\n")),
}  # fmt: skip


def read(name: str, file: Path, scale: float) -> str:
    """Why the file is refused; empty if it is read."""
    try:
        if name.startswith("backup"):
            for _ in backup.runs(file):
                pass
        else:
            reading_process.read(file.read_bytes(), tuple(formats.imports().values()), MEMORY_FACTOR * scale)
    except DocumentError as error:
        return str(error)
    return ""


def _read_group(folder: Path, names: list[str], scale: float) -> None:
    for name in names:
        file = folder / str(list(BOMBS).index(name))
        began_s = time.monotonic()
        refused = read(name, file, scale)
        line = {
            "name": name,
            "bytes": file.stat().st_size,
            "seconds": round(time.monotonic() - began_s, 2),
            "readers_peak_bytes": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024,
            "refused": refused,
        }
        print(json.dumps(line), flush=True)  # noqa: T201


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("groups", nargs="*", metavar="GROUP")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--turns", type=int, default=1, help="in how many turns all bombs are read")
    parser.add_argument("--turn", type=int, default=0, help="the number of the turn")
    parser.add_argument("--folder", type=Path, help="only read what was made in this folder")
    asked = parser.parse_args()
    groups = asked.groups or list(dict.fromkeys(name.partition(":")[0] for name in BOMBS))
    by_group = {group: [name for name in BOMBS if name.partition(":")[0] == group] for group in groups}
    by_group = {group: names[asked.turn % asked.turns :: asked.turns] for group, names in by_group.items()}
    if asked.folder is not None:
        _read_group(asked.folder, [name for names in by_group.values() for name in names], asked.scale)
        return
    os.environ[SCALE] = str(asked.scale)
    for group, names in by_group.items():
        with tempfile.TemporaryDirectory() as folder:
            # Made in another process, so that none of them is in memory when they are read.
            subprocess.run([sys.executable, __file__, "--make", folder, *names], check=True)
            options = ["--folder", folder, "--scale", str(asked.scale)]
            options += ["--turns", str(asked.turns), "--turn", str(asked.turn)]
            subprocess.run([sys.executable, __file__, *options, group], check=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--make"]:
        for name in sys.argv[3:]:
            with (Path(sys.argv[2]) / str(list(BOMBS).index(name))).open("wb") as file:
                file.writelines(BOMBS[name]())
    else:
        main()
