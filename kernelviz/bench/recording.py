"""Record runs for the gallery: each op and direction with all variants at some sizes, in the compact form, and indices."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from kernelviz.bench.bench import Bench
from kernelviz.core import USUAL_FIGURES, BadField, Method, Plan, Run, RunRequest, check_name
from kernelviz.core.problem import Direction
from kernelviz.formats import compact, recorded_times, recordings, shipped_runs
from kernelviz.metrics.samples import by_block

BUDGET_S = 0.15
"""Largest device time for each case of a recorded run, in seconds."""
MOST_SIZES = 6
"""Of the axis of an op that has most: a curve over seventeen sizes says little more, and takes three times as long."""
ENDING = ".kvz"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class OpPass:
    """An op in one direction, which is one run."""

    op: str
    direction: Direction = "forward"

    def __str__(self) -> str:
        return self.op if self.direction == "forward" else f"{self.op} backward"


def name_of(bench: Bench, op: str, device: str, direction: Direction = "forward") -> str:
    """The id of the recorded run of an op on that device, for example ``h200-softmax`` or ``h200-softmax-backward``."""
    return name_on(bench.device(device).name, op, direction)


def name_on(card: str, op: str, direction: Direction = "forward") -> str:
    """The id of the recorded run of an op on a device of that name.

    >>> name_on("NVIDIA H100 80GB HBM3", "softmax", "backward")
    'h100-80gb-hbm3-softmax-backward'
    """
    short = re.sub(r"[^a-z0-9]+", "-", card.removeprefix("NVIDIA ").lower()).strip("-")
    return f"{short[:40]}-{op}" + ("" if direction == "forward" else f"-{direction}")


def plan_of(
    bench: Bench, op: str, device: str, direction: Direction = "forward", *, most_sizes: int = MOST_SIZES
) -> Plan:
    """All variants that can run on the device and solve the problem, except those that run only when named, at default sizes:
    of the axis with most of them at `most_sizes`, from the smallest to the largest.

    Errors: UnknownName; BadField if no variant can run there.
    """
    check_name("op", op, bench.ops())
    offers = bench.offers(op, device)
    if not any(o.available and not o.variant.only_when_named for o in offers):
        raise BadField("op", op, f"none of its variants can run on {device}")
    plan = bench.plan(RunRequest(op=op, device=device, direction=direction))
    sizes = {axis: list(dict.fromkeys(p.sizes[axis] for p in plan.problems)) for axis in plan.problems[0].sizes}
    axis = max(sizes, key=lambda name: len(sizes[name]))
    chosen = set(spread(sizes[axis], most_sizes))
    return msgspec.structs.replace(plan, problems=tuple(p for p in plan.problems if p.sizes[axis] in chosen))


def spread(sizes: Sequence[T], most: int) -> tuple[T, ...]:
    """At most so many of them (two or more): every second, third or further one, and the last.

    >>> spread(range(17), 6), spread(range(11), 6), spread(range(8), 6), spread("abc", 6)
    ((0, 4, 8, 12, 16), (0, 2, 4, 6, 8, 10), (0, 2, 4, 6, 7), ('a', 'b', 'c'))
    """
    step = -(-(len(sizes) - 1) // (most - 1)) or 1
    return (*sizes[:-1:step], sizes[-1])


def unfinished(bench: Bench, title: str) -> str | None:
    """The stored run of an earlier call that was interrupted; None without one."""
    stored = bench.history.find(title)
    return next((r.id for r in stored if r.title == title and r.status in ("cancelled", "interrupted")), None)


def start(
    bench: Bench,
    wanted: OpPass,
    device: str,
    *,
    owner: str = "",
    budget_s: float = BUDGET_S,
    most_sizes: int = MOST_SIZES,
) -> str:
    """Measure the op, or the rest of an interrupted recording of it, and return the id of the run at once."""
    title = title_of(bench, wanted, device)
    earlier = unfinished(bench, title)
    if earlier is not None:
        bench.resume(earlier, owner=owner, by_problem=True)
        return earlier
    return bench.run(
        plan_of(bench, wanted.op, device, wanted.direction, most_sizes=most_sizes),
        Method(budget_s=budget_s, figures=USUAL_FIGURES),
        owner=owner,
        title=title,
        by_problem=True,
    )


def title_of(bench: Bench, wanted: OpPass, device: str) -> str:
    """The title of a recorded run, by which an interrupted recording is found again."""
    return f"{wanted}, all variants, on {bench.device(device).name}"


def write(run: Run, name: str, folder: Path) -> int:
    """Write the run under that id to the folder, in the compact form; returns the size of the file in bytes.

    Contents of code that the run has are written, too (`bench.code.Code.with_code`)."""
    recorded = msgspec.structs.replace(
        by_block(run),
        id=name,
        note=f"Measured by kernelviz on {run.environment.device.name} and shipped with the package. "
        "Where a block has several samples, only their mean is stored.",
        environment=msgspec.structs.replace(run.environment, host="recorded"),
    )
    data = compact.encode(recorded)
    folder.mkdir(parents=True, exist_ok=True)
    part = folder / f"{name}.part"
    part.write_bytes(data)
    part.replace(folder / f"{name}{ENDING}")
    return len(data)


def missing(
    bench: Bench,
    ops: Sequence[str],
    device: str,
    folder: Path,
    *,
    direction: Direction | None = None,
    part: str = "1/1",
) -> tuple[OpPass, ...]:
    """The ops that the folder does not hold yet, in each direction that they have or in that one.

    `part`: see `part_of`, so that N devices can record at once. Errors: UnknownName; BadField for another part, and for an op
    that does not have the direction.
    """
    for op in ops:
        check_name("op", op, bench.ops())
        if direction is not None and direction not in bench.ops()[op].directions:
            raise BadField("direction", direction, f"{op} has no {direction} pass; leave out --direction, or the op")
    wanted = (
        OpPass(op, one)
        for op in part_of(ops, part)
        for one in ((direction,) if direction is not None else bench.ops()[op].directions)
    )
    return tuple(
        one for one in wanted if not (folder / f"{name_of(bench, one.op, device, one.direction)}{ENDING}").is_file()
    )


def part_of(ops: Sequence[str], part: str) -> Sequence[str]:
    """Of "I/N": every Nth op, from the Ith on. Errors: BadField for another text.

    >>> part_of(["add", "copy", "gelu"], "1/2"), part_of(["add", "copy", "gelu"], "2/2")
    (['add', 'gelu'], ['copy'])
    """
    number, _, of = part.partition("/")
    if not (number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of)):
        raise BadField("part", part, "name one like 1/2 and 2/2 for two GPUs")
    return ops[int(number) - 1 :: int(of)]


def write_indices(folder: Path) -> None:
    """Write ``index.json``, ``gallery.json`` and ``times.json.xz`` of all runs in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "index.json").write_bytes(shipped_runs.packed_index(_runs(folder)))
    (folder / "gallery.json").write_bytes(recordings.packed_recordings(_runs(folder)))
    (folder / recorded_times.FILE).write_bytes(recorded_times.packed_times(_runs(folder)))


def _runs(folder: Path) -> Iterator[Run]:
    for name in shipped_runs.names_in(folder):
        yield shipped_runs.load_from(folder, name)
