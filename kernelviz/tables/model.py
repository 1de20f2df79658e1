"""The columns of the tables of a layer: its parts op by op, the parts of the module, and its kernels."""

from kernelviz.core import units
from kernelviz.core.result import half_width
from kernelviz.core.workload import Measured
from kernelviz.metrics.layer_times import WAYS, PartTimes, Way
from kernelviz.metrics.layer_truth import GroupRow, KernelRow
from kernelviz.tables.column import Column, View
from kernelviz.text.model import describe_part, format_part, format_parts
from kernelviz.text.text import Text


def _time(part: PartTimes, way: Way) -> float | None:
    time = part.of(way)
    return None if time is None or time.figure is None else time.figure.estimate


def _half_width(part: PartTimes, way: Way) -> float | None:
    time = part.of(way)
    return None if time is None or time.figure is None else time.figure.half_width


def _best(part: PartTimes) -> str | None:
    best = part.of("best")
    return None if best is None else best.variant


def _format_time(part: PartTimes, way: Way) -> Text | None:
    """The time with the digits that its interval leaves."""
    seconds = _time(part, way)
    return None if seconds is None else Text(units.seconds(seconds, units.digits_of(_half_width(part, way))))


def _times(way: Way, title: str, about: str) -> tuple[Column[PartTimes], ...]:
    """A number for files, and a text with as many digits as its interval leaves for people."""
    return (
        Column(f"{way}_s", title, about, units.SECONDS, lambda p: _time(p, way), View.RECORD),
        Column("", title, about, units.OWN_NUMBER, lambda p: _format_time(p, way), View.WIDE | View.NARROW,
               order=lambda p: _time(p, way)),
    )  # fmt: skip


PART_COLUMNS: tuple[Column[PartTimes], ...] = (
    Column("part", "Part", "A part of the layer, in the order of the calls.", units.OWN_TEXT, lambda p: format_part(p.name)),
    *_times("eager", "torch eager", "Device time of the baseline with flushed caches."),
    *_times("compiled", "torch.compile", "Device time of torch.compile; of a product that of the library that it calls."),
    *_times("best", "Best", "Device time of the fastest correct variant."),
    Column("best", "Best variant", "The fastest correct variant. An unreliable one only where there is no other.", units.TEXT,
           _best),
    Column("roof", "Best, share of roof", "The least time that the measured roofs allow over the time. The roofs are "
           "measurements of other kernels, so that a share may exceed 100 %.", units.SHARE,
           lambda p: p.share_of_roof("best")),
    Column("note", "Note", "What is to be known about the times.", units.OWN_TEXT, describe_part, width="large"),
    Column("problem", "Problem", "What the catalogue calls it; empty if no op covers it.", units.OWN_TEXT,
           lambda p: None if p.part.problem is None else p.part.problem.key),
    Column("flop", "FLOP", "Least work of the part.", units.COUNT, lambda p: None if p.cost is None else p.cost.work_flop,
           View.RECORD | View.WIDE),
    Column("bytes", "Bytes", "Least traffic: each input read once, each output written once.", units.COUNT,
           lambda p: None if p.cost is None else p.cost.moved_bytes, View.RECORD | View.WIDE),
)  # fmt: skip


def _digits(time: Measured) -> int:
    return units.digits_of(half_width(time.estimate, time.low, time.high))


def _own_time(row: GroupRow) -> Text | None:
    time = row.group.time
    return None if time is None else Text(units.seconds(time.estimate, _digits(time)))


def _own_interval(row: GroupRow) -> Text | None:
    time = row.group.time
    if time is None or time.low is None or time.high is None:
        return None
    digits = _digits(time)
    return Text(f"{units.seconds(time.low, digits)} to {units.seconds(time.high, digits)}")


GROUP_COLUMNS: tuple[Column[GroupRow], ...] = (
    Column("variant", "Layer", "The module eager or compiled.", units.OWN_TEXT, lambda r: r.variant),
    Column("parts", "Part", "What the kernels do. Inductor puts several parts into one kernel.", units.OWN_TEXT,
           lambda r: format_parts(r.group.parts)),
    Column("time_s", "On its own", "Busy time behind the part before it, in the rounds of the layer.",
           units.OWN_NUMBER, _own_time),
    Column("share", "Share of layer", "Its time over that of the layer.", units.SHARE, lambda r: r.share),
    Column("interval", "95 % interval", "Of the time on its own.", units.OWN_NUMBER, _own_interval),
    Column("within_s", "Within the layer", "Sum of its kernels in the replay of the layer.", units.SECONDS,
           lambda r: sum(r.group.kernels_s) if r.group.kernels_s else None),
    Column("profiler_s", "torch.profiler", "Sum of its kernels by torch.profiler, in a process of its own.", units.SECONDS,
           lambda r: r.group.profiler_s),
    Column("kernels", "Kernels", "How many kernels, copies and fills it launches.", units.COUNT,
           lambda r: len(r.group.kernels) or None),
)  # fmt: skip

KERNEL_COLUMNS: tuple[Column[KernelRow], ...] = (
    Column("variant", "Layer", "The module eager or compiled.", units.OWN_TEXT, lambda r: r.variant),
    Column("part", "Part", "The part it belongs to, or no part.", units.OWN_TEXT, lambda r: format_parts(r.parts)),
    Column("time_s", "Time", "Within the replay of the layer.", units.SECONDS, lambda r: r.time_s),
    Column("share", "Share of layer", "Its time over that of the layer.", units.SHARE, lambda r: r.share),
    Column("kernel", "Kernel", "The name that its compiler gave it.", units.TEXT, lambda r: r.name, width="large"),
)  # fmt: skip


def part_record(part: PartTimes) -> dict[str, object]:
    """A part as JSON has it: numbers in SI base units, None where something is unknown."""
    record: dict[str, object] = {column.name: column.read(part) for column in PART_COLUMNS if column.name}
    record["part"] = part.name
    for way in WAYS:
        time = part.of(way)
        figure = None if time is None else time.figure
        record |= {
            f"{way}_low_s": None if figure is None else figure.low,
            f"{way}_high_s": None if figure is None else figure.high,
            f"{way}_run": None if time is None else time.run_id,
            f"{way}_quality": None if time is None else time.level,
            f"{way}_missing": part.lacks(way),
        }
    record["gap"], record["stand_in"] = part.part.gap, part.part.stand_in
    return record
