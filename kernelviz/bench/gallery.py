"""The gallery: the recorded runs that come with the package, by op and family, and the ops that have none yet."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kernelviz.bench.bench import Bench
from kernelviz.bench.summaries import RunSummary
from kernelviz.core import check_name
from kernelviz.formats.recordings import Recording, recordings
from kernelviz.metrics.insight import Insight
from kernelviz.ops import Op
from kernelviz.text.insight import describe_insight


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """A run that came with the package, with its insight and its small chart."""

    run: RunSummary
    recording: Recording


@dataclass(frozen=True, slots=True)
class GalleryOp:
    """An op with its recorded runs, in the order of `recorded_runs`."""

    op: Op
    runs: tuple[RecordedRun, ...]


@dataclass(frozen=True, slots=True)
class Family:
    """Ops of one kind."""

    name: str
    ops: tuple[GalleryOp, ...]

    @property
    def recorded(self) -> tuple[GalleryOp, ...]:
        """The ops with a recorded run."""
        return tuple(one for one in self.ops if one.runs)

    @property
    def missing(self) -> tuple[GalleryOp, ...]:
        """The ops without one."""
        return tuple(one for one in self.ops if not one.runs)


@dataclass(frozen=True, slots=True)
class Card:
    """The chart of one run of an op. `other_runs`: the op's further runs, which the card links to."""

    op: GalleryOp
    run: RecordedRun
    other_runs: tuple[RecordedRun, ...] = ()


@dataclass(frozen=True, slots=True)
class Layout:
    """Which recorded runs the page draws as cards, and which it lists as links, by family."""

    cards: tuple[tuple[str, tuple[Card, ...]], ...]
    lists: tuple[Family, ...]

    @property
    def charts(self) -> int:
        """How many cards, and so charts, the page draws."""
        return sum(len(cards) for _, cards in self.cards)


MOST_CARDS = 72
"""So many cards are drawn at most, unless the first family has more: enough for every op of the catalogue. With 50 cards the page
is ready after 0.69 of the reference page (docs/speed.md)."""


def layout(families: Sequence[Family], *, most: int = MOST_CARDS) -> Layout:
    """Draw the first families as cards, whole families and at most `most` cards; list the runs of the families after them.

    An op has one card, which shows its first run and links to the others: the charts of one op on two cards look alike, and a
    reader looks for the op first. If only one op has runs, each of its runs has a card. The first family is always drawn, so
    that a choice of one family shows its charts. Families without a recorded run are left out.
    """
    recorded = [Family(family.name, family.recorded) for family in families if family.recorded]
    ops = [one for family in recorded for one in family.ops]
    if len(ops) == 1:
        (one,) = ops
        return Layout(((recorded[0].name, tuple(Card(one, run) for run in one.runs)),), ())
    totals = itertools.accumulate(len(family.ops) for family in recorded)
    count = max(1, sum(total <= most for total in totals))
    cards = tuple((family.name, tuple(map(_card, family.ops))) for family in recorded[:count])
    return Layout(cards, tuple(recorded[count:]))


def _card(one: GalleryOp) -> Card:
    first = _first(one.runs)
    return Card(one, first, tuple(run for run in one.runs if run is not first))


def gallery(
    bench: Bench, *, family: str | None = None, op: str | None = None, device: str | None = None
) -> tuple[Family, ...]:
    """The families in the order of the catalogue, or only that family, op or device (by its name).

    With a device, an op without a run of that device counts as not recorded. Errors: UnknownName.
    """
    ops = bench.ops()
    recorded = recorded_runs(bench)
    if family is not None:
        check_name("family", family, families_of(ops))
    if op is not None:
        check_name("op", op, ops)
    if device is not None:
        check_name("device", device, devices_of(recorded))
    by_family: dict[str, list[GalleryOp]] = {}
    for name, known in ops.items():
        if op in (None, name) and family in (None, known.family):
            runs = tuple(r for r in recorded if r.run.op == name and device in (None, r.run.device))
            by_family.setdefault(known.family, []).append(GalleryOp(known, runs))
    return tuple(Family(name, tuple(of)) for name, of in by_family.items())


def recorded_runs(bench: Bench) -> tuple[RecordedRun, ...]:
    """Every run that came with the package: the devices in the order of `shipped_runs.lines`, and of one device the newest
    first."""
    derived = recordings()
    runs = bench.history.shipped()
    devices = list(dict.fromkeys(run.device for run in runs))
    newest = sorted(runs, key=lambda run: run.created_at, reverse=True)
    return tuple(RecordedRun(run, derived[run.id]) for run in sorted(newest, key=lambda run: devices.index(run.device)))


def first_of(bench: Bench, op: str) -> RunSummary | None:
    """The first recorded run of an op, in the order of `recorded_runs`, of those with the most variants; None if there is none. A
    run that was recorded for the page Fusion has only some of the variants, and a forward pass precedes a backward one."""
    recorded = [r for r in recorded_runs(bench) if r.run.op == op]
    return _first(recorded).run if recorded else None


def _first(runs: Sequence[RecordedRun]) -> RecordedRun:
    """The run that represents an op, see `first_of`; of runs that are equal in this, the one of the same device with the most
    sizes, because a run of one size has no lines to draw."""
    best = max(runs, key=_rank)
    alike = (r for r in runs if r.run.device == best.run.device and _rank(r) == _rank(best))
    return max(alike, key=lambda r: r.recording.sizes)


def _rank(run: RecordedRun) -> tuple[bool, int]:
    return run.recording.direction == "forward", run.recording.variants


def insight_of(run_id: str) -> Insight | None:
    """The insight of a recorded run, as stored beside it."""
    return recordings()[run_id].insight


def families_of(ops: Mapping[str, Op]) -> tuple[str, ...]:
    """The names of the families in the order of the catalogue."""
    return tuple(dict.fromkeys(op.family for op in ops.values()))


def devices_of(runs: Iterable[RecordedRun]) -> tuple[str, ...]:
    """The names of the devices of recorded runs."""
    return tuple(dict.fromkeys(r.run.device for r in runs))


def records(families: Sequence[Family]) -> list[dict[str, object]]:
    """A record for each recorded run, and one for each op without any, whose run is None."""
    entries: list[dict[str, object]] = []
    for family in families:
        for one in family.ops:
            head = {"family": family.name, "op": one.op.name, "variants": len(one.op.variants)}
            entries += [{**head, **_recorded(recorded)} for recorded in one.runs]
            if not one.runs:
                entries.append({**head, **dict.fromkeys(_RECORDED), "command": f"kernelviz run {one.op.name}"})
    return entries


_RECORDED = ("run", "device", "created_at", "direction", "dtype", "recorded_variants", "sizes", "insight", "command")


def _recorded(one: RecordedRun) -> dict[str, object]:
    run, recording = one.run, one.recording
    sentence = str(describe_insight(recording.insight))
    derived = (recording.direction, recording.dtype, recording.variants, recording.sizes, sentence)
    values = (run.id, run.device, run.created_at, *derived, f"kernelviz runs show {run.id}")
    return dict(zip(_RECORDED, values, strict=True))
