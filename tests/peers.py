"""The files of other tools that tests read."""

from __future__ import annotations

import gzip
from pathlib import Path

FOLDER = Path(__file__).parent / "formats" / "peers"


def nvbench() -> bytes:
    return gzip.decompress((FOLDER / "nvbench_ref.json.gz").read_bytes())


def kernel_tuner(name: str = "cache") -> bytes:
    return (FOLDER / f"kernel_tuner_{name}.json").read_bytes()


def gbench(name: str = "1") -> bytes:
    return (FOLDER / f"google_benchmark_{name}.json").read_bytes()
