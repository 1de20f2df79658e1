"""Use case: measure the plan of a stored run again, and compare the two runs. For page, CLI, Python and timers."""

import msgspec

from kernelviz.bench.bench import Bench
from kernelviz.bench.history import TITLE_CHARACTERS
from kernelviz.core import LIVING, BadField, UnknownName
from kernelviz.metrics.comparison import Comparison, Pair

MACHINE_SLOWER = 0.02
"""The default limit from which the same code counts as slower on this machine. Five new processes differ by 0.4 %."""


def again(bench: Bench, run_id: str, *, device: str | None = None, anywhere: bool = True, owner: str = "") -> str:
    """Queue the plan of the run by its method, and return the id of the new run, to be compared with the old one
    (`bench.comparison`).

    `device`: where to measure; None takes the device of the plan if this machine has it, otherwise (`anywhere`) the first of
    this machine. Variants of the server's plug-ins are measured if the server still has them. Errors: UnknownRun; BadField for
    a run in progress or a device that is not here; UnknownName for a variant that no longer exists.
    """
    baseline = bench.load(run_id)
    if baseline.status in LIVING:
        raise BadField("run", run_id, "it still goes on; wait until it has ended")
    known = [d.id for d in bench.devices()]
    if device is not None and device not in known:
        raise BadField("device", device, f"this machine has {', '.join(known)}")
    if device is None and baseline.plan.device not in known and not anywhere:
        # A timer would compare times of a CPU with those of a GPU, and call every variant broken that cannot run there.
        raise BadField(
            "device",
            baseline.plan.device,
            f"run {run_id} was measured on it and it is not here; name one with --device ({', '.join(known)})",
        )
    where = device or (baseline.plan.device if baseline.plan.device in known else bench.default_device())
    title = f"again: {baseline.title or baseline.id}"[:TITLE_CHARACTERS]
    return bench.run(msgspec.structs.replace(baseline.plan, device=where), baseline.method, owner=owner, title=title)


def must_be_op(bench: Bench, op: str) -> None:
    """Check the name of an op. Errors: UnknownName for an op that is neither in the catalogue nor in any stored run."""
    ops = bench.ops()
    if op not in ops and not any(run.op == op for run in bench.history.find(op, limit=bench.history.count(op) or 1)):
        raise UnknownName("op", op, ops)


def machine_slower(compared: Comparison, limit: float | None) -> tuple[Pair, ...]:
    """Pairs with unchanged code whose whole interval is slower by more than the limit (a fraction; None: MACHINE_SLOWER).

    In a comparison of code these differences are noise. For a plan that is measured again every month, they mean that the
    machine, its driver or its clocks have changed.
    """
    least = 1 + (MACHINE_SLOWER if limit is None else limit)
    return tuple(
        p for p in compared.pairs if p.kind == "same code" and p.ratio is not None and (p.ratio.low or 0.0) > least
    )
