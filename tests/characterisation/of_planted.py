"""Planted faults, measured on this machine's processor."""

from __future__ import annotations

import errno
import itertools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from characterisation import adapter
from characterisation.common import (
    opened,
)
from characterisation.facts import plain, shape

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
        found[f"inspect {variant}"] = {"exit": code, "fields": _fields(made), "errors": _errors(made)}
    code, made = measured(
        "tune", "add", "in_blocks", "--with", str(TESTS / "planted_tuning.py"), "--size", "n=512", "--device", "cpu",
    )  # fmt: skip
    counts = ("tried", "failed", "refused", "cancelled", "planned", "space")
    found["tune"] = {
        "exit": code,
        "fields": _fields(made),
        **{k: made.get(k) for k in counts if k in (made or {})},
    }
    code, made = measured(
        "tune", "add", "never_right", "--with", str(TESTS / "planted_tuning.py"), "--size", "n=512", "--device", "cpu",
    )  # fmt: skip
    found["tune never_right"] = {"exit": code, **{k: made.get(k) for k in counts if k in (made or {})}}
    found["hangs"] = _hangs()
    for name, text in PLUGINS.items():
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / f"{name}.py"
            file.write_text(text)
            code, document = measured(
                "run", "add", "--with", str(file), "--size", "n=64", "--device", "cpu", "--budget-s", "0.02"
            )
            found[f"plug-in {name}"] = {"exit": code, "document": document is not None}
    return plain(found)


def _fields(made: Any) -> list[str]:
    """The names of all fields; of `versions` only itself, since it has one for each package that is installed."""
    return sorted(name for name in shape(made) if ".versions." not in name)


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


def _hangs() -> dict[str, Any]:
    """A variant that never returns, beside one that does, under limits of seconds."""
    import kernelviz as kv

    with tempfile.TemporaryDirectory() as folder, adapter.bench_with(Path(folder), adapter.here(), impatient=True):
        run = kv.run(
            "add", sizes={"n": 64}, variants=["torch_eager", "hangs"], device="cpu", budget_s=0.02, figures=("cold",),
            plugins=[TESTS / "planted.py"],
        )  # fmt: skip
        return {result.variant: getattr(result.outcome, "stage", None) for result in run.results}


def judgements() -> dict[str, Any]:
    """Which stage an exception is, and which times no data sheet allows."""
    import torch

    def wrapped(cause: Exception) -> Exception:
        made = RuntimeError("compiling failed")
        made.__cause__ = cause
        return made

    errors: dict[str, Exception] = {
        "no space": OSError(errno.ENOSPC, "No space left on device"),
        "quota": OSError(errno.EDQUOT, "Disk quota exceeded"),
        "compiler without space": RuntimeError("fatal error: error writing to x.s: No space left on device"),
        "permission": PermissionError(errno.EACCES, "Permission denied", "/etc/shadow"),
        "memory": MemoryError(),
        "memory of torch": torch.OutOfMemoryError("CUDA out of memory"),
        "memory of the system": RuntimeError("DefaultCPUAllocator: can't allocate memory"),
        "value": ValueError("no such configuration"),
        "runtime": RuntimeError("an illegal memory access was encountered"),
        "assert": AssertionError("no"),
        "keyboard": RuntimeError("CUDA error: device-side assert triggered"),
        "import": ImportError("No module named x"),
        "not implemented": NotImplementedError("not for this dtype"),
        **{
            name: type(name, (Exception,), {})("no")
            for name in ("CompilationError", "NVRTCError", "PTXASError", "Unsupported")
        },
    }
    found: dict[str, Any] = {"errors": {}, "times": {}}
    for (name, error), calling in itertools.product(errors.items(), (True, False)):
        found["errors"][f"{name} calling={calling}"] = [
            adapter.stage_of_error(error, calling=calling),
            adapter.stage_of_error(wrapped(error), calling=calling),
        ]
    gpu = opened("before").environment.device
    unknown = type(gpu)(id="cuda:0", kind="cuda", name="NVIDIA H999", uuid="GPU-x")
    for op, sizes, dtype, times in (
        ("add", {"n": 2**26}, "fp32", (1e-9, 154e-6, 156e-6, 1e-3)),
        ("add", {"n": 2**20}, "fp32", (1e-9, 1e-6, 2e-6, 3e-6)),
        ("matmul", {"m": 4096, "n": 4096, "k": 4096}, "bf16", (138e-6, 139e-6, 140e-6)),
        ("softmax", {"m": 4096, "n": 4096}, "bf16", (1e-6, 7e-6, 14e-6)),
    ):
        for time_s, clock_hz in itertools.product(times, (None, 1.98e9)):
            stages = [adapter.stage_of_time(op, sizes, dtype, time_s, device, clock_hz) for device in (gpu, unknown)]
            found["times"][f"{op} {dtype} {time_s} {clock_hz}"] = stages
    return found
