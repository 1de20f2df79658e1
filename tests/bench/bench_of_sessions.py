"""A real bench whose worker runs the sessions of tests.worker.sessions: an op `add` with variants called by what they do."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from kernelviz.bench import Bench
from kernelviz.bench.availability import Choice
from kernelviz.core.notices import Notice
from kernelviz.core.request import RunRequest
from kernelviz.core.run import Device
from kernelviz.ops import Op, Preset, Variant, catalogue
from kernelviz.store import Store
from kernelviz.worker.limits import Limits
from tests.worker.sessions import DEVICE, FAULTS

GPU = Device(id="cuda:0", kind="cuda", name="Test GPU", uuid="GPU-test")
BROKEN_GPU = Device(
    id="cuda:1", kind="cuda", name="Old GPU", uuid="GPU-old", usable=False, reason="the driver is too old; update it"
)
QUICK = Limits(step_s=3.0, check_s=3.0, cancel_s=1.0)
"""Of what hangs on purpose; on a machine that does other work, too, an honest case is silent for half a second."""
NAMES = ("a", "b", *FAULTS, "twice", "out_of_memory", "until_cancelled", "not_finite", "later_abort", "later_waits")


def _bind(*inputs: object) -> None:
    raise AssertionError("nothing is bound in the server")


def ops() -> Mapping[str, Op]:
    """`add` with these variants; `needs_cuda` cannot run on a processor, `half_only` has no fp32."""
    made = [Variant(name=name, backend="torch", bind=_bind, summary=name) for name in NAMES]
    made.append(Variant(name="needs_cuda", backend="triton", bind=_bind, summary="", needs=("cuda",)))
    made.append(Variant(name="slow", backend="inductor", bind=_bind, summary="", slow_compile=True))
    made.append(Variant(name="half_only", backend="torch", bind=_bind, summary="", dtypes=("fp16",)))
    preset = Preset(name="model", caption="A model", sizes={"n": "64,128"})
    add = dataclasses.replace(catalogue()["add"], variants=tuple(made), baseline="a", presets=(preset,))
    return {"add": add}


def missing(needs: Sequence[str], device: Device) -> Notice | None:
    if not device.usable:
        return Notice("stated", {"text": device.reason})
    return Notice("stated", {"text": "needs CUDA: no GPU here"}) if "cuda" in needs and device.kind == "cpu" else None


def bench_in(folder: Path, devices: tuple[Device, ...] = (DEVICE,), session: str = "open_session") -> Bench:
    return Bench(
        Store.open(folder),
        devices,
        choice=Choice(ops=ops, missing=missing),
        session=f"tests.worker.sessions:{session}",
        limits=QUICK,
        lock_directory=folder,
    )


def main() -> None:
    """A server in a process of its own: measure variants in `argv[1]`, tell the run's id, live until stdin ends."""
    bench = bench_in(Path(sys.argv[1]))
    run_id = bench.run(bench.plan(RunRequest(op="add", sizes={"n": "1,2"}, variants=tuple(sys.argv[2].split(",")))))
    sys.stdout.write(run_id + "\n")
    sys.stdout.flush()
    sys.stdin.read()
    bench.close()
    os._exit(0)


if __name__ == "__main__":
    main()
