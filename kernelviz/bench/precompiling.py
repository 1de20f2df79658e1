"""Use case: compile Triton variants of an op by the Triton of this machine, for a GPU that need not be here."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import msgspec

from kernelviz.bench import planning
from kernelviz.core import BadField, Device, DeviceError, Direction, Problem, Run, RunRequest
from kernelviz.formats import shipped_runs
from kernelviz.measure.precompiled.messages import Answer, Request
from kernelviz.ops import Op, Variant, op_named

LONGEST_S = 3600.0
"""After this the compilation is ended."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Precompilation:
    """A plug-in that was written. `compiler`: name and version. `failures`: cases that do not compile, with their errors."""

    file: Path
    device: Device
    compiler: str
    kernels: int
    variants: tuple[str, ...]
    problems: tuple[Problem, ...]
    failures: dict[str, str]


def precompile(
    request: RunRequest, output: Path, *, of: Run | None = None, ptxas: Path | None = None
) -> Precompilation:
    """Compile, in a process without a GPU, and write the plug-in to `output`.

    `of`: a run on such a GPU; by default the one that came with the package for this op, or for any. Without `ptxas`, Triton's
    own assembles the PTX. Errors: UnknownName, BadField; DeviceError if Triton is missing or the process fails.
    """
    if output.suffix != ".py" or not output.stem.isidentifier():
        raise BadField("--output", output, "name a Python file, as kernels.py, because it is a plug-in")
    if ptxas is not None and not (ptxas.is_file() and os.access(ptxas, os.X_OK)):
        raise BadField("--ptxas", ptxas, "it is no program that can be started; name a ptxas of the CUDA toolkit")
    op = op_named(request.op)
    run = of or _shipped(request.op)
    if run.environment.device.kind != "cuda":
        raise BadField("--for", run.id, "it was measured on a processor; name a run of a GPU")
    device = msgspec.structs.replace(run.environment.device, id="cuda:0")
    problems = planning.problems(op, device, request)
    variants = _variants(op, device, request)
    answer = _answer_of(op, device, problems, variants, cast(Direction, request.direction), ptxas)
    if not answer.kernels:
        failure = next(iter(answer.failures.items()), ("", "no variant has a kernel at these sizes"))
        raise BadField("op", op.name, f"nothing was compiled: {': '.join(filter(None, failure))}")
    try:
        output.write_text(answer.text)
    except OSError as error:
        raise BadField("--output", output, f"it cannot be written: {error.strerror}") from None
    return Precompilation(
        file=output,
        device=device,
        compiler=answer.compiler,
        kernels=answer.kernels,
        variants=tuple(v.name for v in variants),
        problems=problems,
        failures=answer.failures,
    )


def _shipped(op: str) -> Run:
    """A run of a GPU that came with the package, of this op if there is one."""
    lines = shipped_runs.lines().values()
    return shipped_runs.load(min(lines, key=lambda line: line.op != op).id)


def _variants(op: Op, device: Device, request: RunRequest) -> tuple[Variant, ...]:
    """The variants of Triton for this GPU, or those that are named. Errors: UnknownName, BadField."""
    major, minor = device.compute_capability or (0, 0)
    arch = f"sm_{major}{minor}"
    fitting = [
        v for v in op.variants if v.backend == "triton" and arch in v.targets and request.direction in v.directions
    ]
    if request.variants:
        named = tuple(op.variant_named(name) for name in request.variants)
        for variant in named:
            if variant.name not in [v.name for v in fitting]:
                can = ", ".join(v.name for v in fitting) or "none"
                raise BadField(
                    "variant",
                    variant.name,
                    f"only variants that are written in Triton can be compiled here ({arch}, {request.direction}: {can})",
                )
        return named
    chosen = tuple(v for v in fitting if not v.only_when_named)
    if not chosen:
        raise BadField("op", op.name, f"it has no variant of Triton for {arch}, {request.direction}")
    return chosen


def _answer_of(
    op: Op,
    device: Device,
    problems: tuple[Problem, ...],
    variants: tuple[Variant, ...],
    direction: Direction,
    ptxas: Path | None,
) -> Answer:
    """What the process answers. Errors: BadField of the process's own message, DeviceError."""
    compilation = Request(
        op=op.name,
        variants=tuple(v.name for v in variants),
        problems=problems,
        direction=direction,
        device=device,
    )
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    environment.pop("TRITON_INTERPRET", None)
    if ptxas is not None:
        environment["TRITON_PTXAS_PATH"] = str(ptxas.resolve())
    command = [sys.executable, "-P", "-m", "kernelviz.measure.precompiled"]
    try:
        ended = subprocess.run(
            command,
            input=msgspec.json.encode(compilation),
            capture_output=True,
            check=False,
            env=environment,
            timeout=LONGEST_S,
        )
    except subprocess.TimeoutExpired:
        raise DeviceError(
            f"compiling {op.name} took more than {LONGEST_S / 60:.0f} minutes; compile fewer sizes"
        ) from None
    errors = ended.stderr.decode("utf-8", "replace").strip()
    if ended.returncode != 0:
        raise DeviceError(f"compiling {op.name} failed: {errors.splitlines()[-1] if errors else 'the process ended'}")
    return msgspec.json.decode(ended.stdout, type=Answer)
