"""What was compiled without a GPU, as committed (`compiled.json.gz`): tests compile only what has changed since, and a sample.

    python tests/ops/compile_record.py          compile what is not on record, and write the record
    python tests/ops/compile_record.py --all    compile everything again

An entry is found by a digest of all that decides what it says: the variant's sources, default configuration and declared
techniques, the problems, the architecture, the versions of the compilers, and the code that compiles and judges in tests. So an
entry is never out of date; it is only not found any more. Imports no torch.
"""

from __future__ import annotations

import ast
import functools
import gzip
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT), str(HERE.parent), str(HERE)]

from cases import SHARDS, compile_problems, compiled_by, ops_of  # noqa: E402

from kernelviz.ops import Op, Variant  # noqa: E402

RECORD = HERE / "compiled.json.gz"
SAMPLE = 80
"""Of the entries on record, one of so many is compiled again, and must say the same: others at each commit."""
Compiler = Literal["triton", "nvrtc"]
Line = dict[str, Any]
PACKAGES: Mapping[Compiler, tuple[str, ...]] = {
    "triton": ("triton",),
    "nvrtc": ("nvidia-cuda-nvrtc", "cuda-core", "triton"),  # nvdisasm, which reads the cubins, comes with triton
}


def key_of(op: Op, variant: Variant, arch: str, compiler: Compiler) -> str:
    """The digest under which a variant's entry for an architecture is found (32 hex digits)."""
    problems = list(compile_problems(op, variant, arch))
    directed = {p.direction: op.of(p).variant_named(variant.name) for p in problems}
    parts = [
        op.name,
        variant.name,
        arch,
        [(direction, v.source_digest()) for direction, v in sorted(directed.items())],
        sorted(variant.default.items()),
        sorted(variant.largest.items()),
        sorted(variant.techniques),
        variant.targets,
        [p.key for p in problems],
        [(name, version(name)) for name in PACKAGES[compiler]],
        _harness(),
    ]
    return hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest()[:32]


@functools.cache
def version(package: str) -> str:
    """The installed version of a package, or "none"."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "none"


@functools.cache
def _harness() -> str:
    """A digest of the code that compiles and judges here, without its comments."""
    files = [HERE / "compiled_only.py", HERE / "checking.py", ROOT / "kernelviz/core/machine_code.py"]
    for folder in ("machine_code", "measure/compile_ahead"):
        files += sorted((ROOT / "kernelviz" / folder).glob("*.py"))
    trees = [ast.dump(ast.parse(file.read_text())) for file in files]
    return hashlib.sha256("\n".join(trees).encode()).hexdigest()


@functools.cache
def recorded() -> dict[str, list[Line]]:
    """The lines of each entry on record, by its digest."""
    return dict(json.loads(gzip.decompress(RECORD.read_bytes()))) if RECORD.is_file() else {}


def in_sample(key: str, seed: str) -> bool:
    """Is an entry compiled again at the commit `seed`? None is where there is no commit."""
    return bool(seed) and int(hashlib.sha256(f"{seed} {key}".encode()).hexdigest()[:8], 16) % SAMPLE == 0


def differences(lines: Iterable[Line], record: Mapping[str, list[Line]]) -> list[str]:
    """Where lines that were compiled now do not say what the record says: whether a case compiles, or why it is refused.

    Kernels and techniques are not compared: a line names only what its process compiled for the first time.
    """
    then = {(key, line["case"]): line for key, several in record.items() for line in several}
    return [
        f"{line['arch']} {line['case']}: {_outcome(line)}, on record {_outcome(before)}"
        for line in lines
        if (before := then.get((line["key"], line["case"]))) is not None and _outcome(line) != _outcome(before)
    ]


def _outcome(line: Line) -> tuple[object, ...]:
    return tuple(line.get(name) for name in ("ok", "refused", "message"))


def compiled(ops: Sequence[str], cache: Path | None = None, *, seed: str = "", everything: bool = False) -> list[Line]:
    """What a process of its own says that compiles the ops' kernels: one line a case. `cache`: the folder of the compilers'
    caches, by default the user's. Raises RuntimeError, with the end of what the process printed, if it fails."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    if cache is not None:
        environment |= {"TRITON_CACHE_DIR": str(cache), "KERNELVIZ_CACHE": str(cache)}
    environment.pop("TRITON_INTERPRET", None)
    done = subprocess.run(
        [sys.executable, HERE / "compiled_only.py", "all" if everything else f"seed={seed}", *ops],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(done.stderr[-4000:])
    return [json.loads(line) for line in done.stdout.splitlines()]


def keys() -> Iterator[str]:
    """Of every entry that a complete record has."""
    compilers: tuple[Compiler, ...] = ("triton", "nvrtc")
    for compiler in compilers:
        for op, variant in compiled_by(compiler):
            for arch in variant.targets:
                yield key_of(op, variant, arch, compiler)


def main(arguments: Sequence[str]) -> int:
    everything = list(arguments) == ["--all"]
    if arguments and not everything:
        sys.stderr.write(f"unknown arguments {' '.join(arguments)}; give --all or nothing\n")
        return 2
    with ThreadPoolExecutor(SHARDS) as pool:
        several = list(pool.map(lambda n: compiled(ops_of(n), everything=everything), range(SHARDS)))
    lines = [line for some in several for line in some]
    failed = [f"{line['arch']} {line['case']}: {line['message']}" for line in lines if not line.get("ok", True)]
    if failed:
        sys.stderr.write("\n".join([*failed, "nothing is written, because these do not compile", ""]))
        return 1
    record: dict[str, list[Line]] = {}
    for line in lines:
        record.setdefault(line.pop("key"), []).append({k: v for k, v in line.items() if k != "on_record"})
    content = json.dumps(dict(sorted(record.items())), separators=(",", ":"), sort_keys=True).encode()
    RECORD.write_bytes(gzip.compress(content, mtime=0))
    sys.stdout.write(f"{RECORD.name}: {len(record)} entries, {len(lines)} lines, {RECORD.stat().st_size} bytes\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
