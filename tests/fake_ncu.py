"""An executable `ncu` that profiles nothing: it writes a table of numbers made by hand, or fails as the real one does.

The messages are those of Nsight Compute (2025.3), the layout is that of `ncu --csv --page raw`. No number was measured.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
from pathlib import Path
from typing import Any, Literal

from kernelviz.core.counters import END_MARKER
from kernelviz.hardware.nsight_compute.metric_names import METRICS

Mode = Literal[
    "counts", "two_kernels", "old_ncu", "not_permitted", "busy", "not_loaded", "fails", "waits", "sees_nothing", "is_cut_off",
    "one_variant_missing",
]  # fmt: skip

_SCRIPT = """#!{python}
import json, os, sys, time
sys.path[:0] = {path!r}
from tests.fake_ncu import answer
sys.exit(answer({folder!r}, {mode!r}, sys.argv[1:]))
"""
VALUES = {
    "time": ("ns", "52,300"), "bytes": ("byte", "67108864"), "frequency": ("hz", "1980000000"), "count": ("", "65536"),
    "sectors": ("sector", "2097152"), "share": ("%", "40.5"), "ratio": ("", "0.25"),
}  # fmt: skip
"""Units and values by quantity, as `--print-units base` writes them."""
UNKNOWN_TO_OLD = "lts__t_bytes.sum"


def install(folder: Path, mode: Mode = "counts") -> Path:
    """Write the executable into a folder of its own, and return that folder, which belongs on the PATH."""
    place = folder / f"ncu-{mode}"
    place.mkdir()
    file = place / "ncu"
    file.write_text(
        _SCRIPT.format(python=sys.executable, path=[str(Path(__file__).parents[1])], folder=str(place), mode=mode)
    )
    file.chmod(0o755)
    return place


def on_path(monkeypatch: Any, folder: Path, mode: Mode = "counts") -> Path:
    """Put the executable first on the PATH, and return its folder."""
    place = install(folder, mode)
    monkeypatch.setenv("PATH", f"{place}{os.pathsep}{os.environ['PATH']}")
    return place


def calls(place: Path) -> list[list[str]]:
    """The arguments of each start, but for `--version`."""
    file = place / "calls.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def table(kernels: list[str], metrics: list[str], values: dict[str, str] | None = None) -> str:
    """A raw page with these kernels."""
    known = {metric.name: metric for metric in METRICS}
    about = ["ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size", "Grid Size",
             "Device", "CC"]  # fmt: skip
    units = [VALUES[known[name].quantity][0] for name in metrics]
    lines = [[*about, *metrics], [*[""] * len(about), *units]]
    for number, kernel in enumerate(kernels):
        numbers = [(values or {}).get(name, VALUES[known[name].quantity][1]) for name in metrics]
        lines.append([str(number), "4711", "python3.12", "127.0.0.1", kernel, "1", "7", "(256, 1, 1)", "(65,536, 1, 1)", "0",
                      "9.0", *numbers])  # fmt: skip
    return "\n".join(",".join(f'"{cell}"' for cell in line) for line in lines) + "\n"


def answer(folder: str, mode: Mode, arguments: list[str]) -> int:
    """What the executable does."""
    if arguments == ["--version"]:
        sys.stdout.write(
            "NVIDIA (R) Nsight Compute Command Line Profiler\nVersion 2025.3.1.0 (build 1) (public-release)\n"
        )
        return 0
    with (Path(folder) / "calls.jsonl").open("a") as file:
        file.write(json.dumps(arguments) + "\n")
    options = dict(itertools.pairwise(arguments))
    output, metrics = Path(options["--log-file"]), options["--metrics"].split(",")
    variants = options["--variants"].split(",")
    messages = "==PROF== Connected to process 4711 (/usr/bin/python3.12)\n"
    kernels = [name for variant in variants for name in (*_kernels(mode, variant), END_MARKER)]
    failures = {
        "not_permitted": "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance "
        "Counters on the target device 0.\n",
        "busy": '==ERROR== Failed to profile "k": a required driver resource was unavailable\n',
        "not_loaded": "==ERROR== LibraryNotLoaded\n",
        "fails": "==ERROR== The application returned an error code (1).\n",
    }
    if mode in failures:
        output.write_text(messages + failures[mode])
        sys.stderr.write("out of memory on \x1b[31mcuda:0\n" if mode == "fails" else "")
        return 1
    if mode == "waits":
        import time

        (Path(folder) / "waits").touch()
        time.sleep(60)
    if mode == "old_ncu" and UNKNOWN_TO_OLD in metrics:
        output.write_text(messages + "==ERROR== Failed to find metric regex:^lts__t_bytes\\.(sum|avg|min|max)$\n")
        return 1
    if mode == "sees_nothing":
        output.write_text(messages + "==WARNING== No kernels were profiled.\n")
        return 0
    text = table(kernels[:-1] if mode == "one_variant_missing" else kernels, metrics)
    output.write_text(messages + (text[: len(text) * 2 // 3] if mode == "is_cut_off" else text))
    sys.stdout.write(f"called 1 time: {options['launch']}\n")
    return 0


def _kernels(mode: Mode, variant: str) -> list[str]:
    return [f"void {variant}_kernel<float, 4>(int)"] * (2 if mode == "two_kernels" else 1)
