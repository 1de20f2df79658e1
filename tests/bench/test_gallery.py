"""The gallery: what is derived from the recorded runs and stored beside them, and the same list in CLI and Python."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest
import sample_runs as samples

import kernelviz as kv
from kernelviz import bench as use_cases
from kernelviz.bench import Bench
from kernelviz.bench import gallery as use_case
from kernelviz.bench.best import auto_names
from kernelviz.bench.gallery import (
    MOST_CARDS,
    Family,
    GalleryOp,
    Layout,
    RecordedRun,
    first_of,
    gallery,
    layout,
    recorded_runs,
)
from kernelviz.bench.library_comparison import every_row
from kernelviz.cli import main
from kernelviz.core.errors import UnknownName
from kernelviz.formats import recorded_times, recordings, shipped_runs
from kernelviz.metrics.figures import figure_of
from kernelviz.metrics.library_comparison import comparison_rows, last_of_each
from kernelviz.plots.sketch_image import thumbnail
from kernelviz.store import Store


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    made = Bench(Store.open(tmp_path), (samples.CPU,))
    monkeypatch.setattr(use_cases, "current", lambda: made)
    yield made
    made.close()


def test_what_is_stored_beside_the_recorded_runs_follows_from_them() -> None:
    """`kernelviz record --index` writes the file again."""
    folder = shipped_runs.folder()
    runs = [shipped_runs.load_from(folder, name) for name in shipped_runs.names_in(folder)]
    assert (folder / "gallery.json").read_bytes() == recordings.packed_recordings(runs)
    stored = lzma.decompress((folder / recorded_times.FILE).read_bytes())
    assert stored == recorded_times.encoded_times(runs)
    bench = use_cases.current()
    auto = partial(auto_names, bench)
    whole = last_of_each(row for run in runs for row in comparison_rows([run], auto=auto))
    light = {(row.card, row.problem.key): row for row in every_row(bench) if shipped_runs.is_shipped(row.run_id)}
    assert light.keys() == {(row.card, row.problem.key) for row in whole if row.problem.op in bench.ops()}
    for row in whole:
        other = light.get((row.card, row.problem.key))
        if other is not None:
            assert (row.ratio, row.auto_ratio, row.share, row.choice) == (
                other.ratio,
                other.auto_ratio,
                other.share,
                other.choice,
            )
            own, same = (None if r.own is None else figure_of(r.own.timing, "cold") for r in (row, other))
            assert (own is None) == (same is None)
            if own is not None and same is not None:
                assert (same.low, same.high) == (pytest.approx(own.low, rel=1e-4), pytest.approx(own.high, rel=1e-4))


def test_every_op_is_in_one_family_and_every_recorded_run_at_its_op(bench: Bench) -> None:
    families = gallery(bench)
    assert [one.op.name for f in families for one in f.ops] == sorted(
        bench.ops(), key=lambda name: [f.name for f in families].index(bench.ops()[name].family)
    )
    shown = [r.run.id for f in families for one in f.ops for r in one.runs]
    assert sorted(shown) == sorted(shipped_runs.names())
    for family in families:
        assert all(one.runs for one in family.recorded)
        assert len(family.recorded) + len(family.missing) == len(family.ops)
    assert first_of(bench, "softmax") == bench.history.summary("h200-softmax")


def test_runs_of_the_card_with_more_bandwidth_come_first_and_of_one_card_the_newest(bench: Bench) -> None:
    runs = [r.run for r in recorded_runs(bench)]
    devices = [run.device for run in runs]
    assert list(dict.fromkeys(devices)) == ["NVIDIA H200", "NVIDIA H100 80GB HBM3"]
    assert devices == sorted(devices, reverse=True)
    for device in set(devices):
        times = [run.created_at for run in runs if run.device == device]
        assert times == sorted(times, reverse=True)


def test_filters_and_their_refusals(bench: Bench) -> None:
    (only,) = gallery(bench, op="softmax", device="NVIDIA H200")
    assert [one.op.name for one in only.ops] == ["softmax"]
    assert {f.name for f in gallery(bench, family="reduction")} == {"reduction"}
    for wrong in ({"family": "reductoin"}, {"op": "softmacs"}, {"device": "H20"}):
        with pytest.raises(UnknownName):
            gallery(bench, **wrong)


def many(bench: Bench, families: dict[str, dict[str, int]]) -> tuple[Family, ...]:
    """Families with these ops, and so many runs of each, on two devices in turn."""
    one = recorded_runs(bench)[0]
    devices = ("NVIDIA H200", "NVIDIA H100 80GB HBM3")
    op = bench.ops()["softmax"]

    def run(name: str, number: int) -> RecordedRun:
        summary = msgspec.structs.replace(one.run, id=f"{name}-{number}", op=name, device=devices[number % 2])
        facts = msgspec.structs.replace(one.recording, direction="backward" if number > 1 else "forward", variants=3)
        return RecordedRun(summary, facts)

    return tuple(
        Family(name, tuple(GalleryOp(replace(op, name=o), tuple(run(o, n) for n in range(c))) for o, c in ops.items()))
        for name, ops in families.items()
    )


def test_the_first_families_are_cards_and_every_run_is_on_a_card_or_in_a_list_once(bench: Bench) -> None:
    found = many(
        bench, {"a": {"a1": 4, "a2": 1}, "none": {"n1": 0}, "b": {"b1": 2, "b2": 0}, "c": {"c1": 1}, "d": {"d1": 3}}
    )
    for most, cards, lists in ((9, "abcd", ""), (4, "abc", "d"), (3, "ab", "cd"), (2, "a", "bcd"), (1, "a", "bcd")):
        shown = layout(found, most=most)
        assert "".join(name for name, _ in shown.cards) == cards
        assert "".join(family.name for family in shown.lists) == lists
        drawn = [run for _, of in shown.cards for card in of for run in (card.run, *card.other_runs)]
        listed = [run for family in shown.lists for one in family.ops for run in one.runs]
        assert sorted(r.run.id for r in drawn + listed) == sorted(
            r.run.id for f in found for o in f.ops for r in o.runs
        )
        assert shown.charts == sum(len(family.recorded) for family in found) - sum(len(f.ops) for f in shown.lists)
    assert layout(many(bench, {"none": {"n1": 0}})) == Layout((), ())
    assert len(bench.ops()) <= MOST_CARDS, "every op has a card"


def test_a_card_shows_the_first_run_of_its_op_and_each_run_of_an_only_op_has_a_card(bench: Bench) -> None:
    two = layout(many(bench, {"a": {"a1": 4, "a2": 1}}))
    assert [(c.run.run.id, [o.run.id for o in c.other_runs]) for _, of in two.cards for c in of] == [
        ("a1-0", ["a1-1", "a1-2", "a1-3"]),
        ("a2-0", []),
    ]
    only = layout(many(bench, {"a": {"a1": 4, "a2": 0}}), most=2)
    assert [(c.run.run.id, c.other_runs) for _, of in only.cards for c in of] == [(f"a1-{n}", ()) for n in range(4)]
    (drawn,) = layout(gallery(bench, family="normalisation", device="NVIDIA H200")).cards[0][1][:1]
    assert drawn.run.run == first_of(bench, drawn.op.op.name)


def test_the_command_and_the_frame_hold_the_same(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gallery", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    frame = kv.gallery()
    assert [r["op"] for r in listed] == list(frame["op"])
    recorded = {r["run"]: r for r in listed if r["run"]}
    assert sorted(recorded) == sorted(shipped_runs.names())
    assert "is fastest" in recorded["h200-softmax"]["insight"]
    assert {r["command"] for r in listed if r["run"] == "h200-softmax"} == {"kernelviz runs show h200-softmax"}
    assert main(["gallery", "--op", "rel"]) == 2
    assert "relu" in capsys.readouterr().err


def test_a_thumbnail_is_small_and_draws_every_line_inside_its_frame(bench: Bench) -> None:
    for one in recorded_runs(bench):
        drawn = one.recording.sketch
        image = thumbnail(one.run.op, drawn, width=320, height=170)
        assert len(image) < 9000
        root = ElementTree.fromstring(image)
        paths = [e.get("d") or "" for e in root.iter("{http://www.w3.org/2000/svg}path")]
        assert len(paths) == 1 + (len(drawn.roof) > 1) + len(drawn.lines)
        for path in paths[1:]:
            for point in path[1:].split("L"):
                x, y = map(float, point.split())
                assert 0 <= x <= 320, one.run.id
                assert 0 <= y <= 170, one.run.id
    assert "no correct time" in thumbnail("add", recordings.Sketch())


def test_an_op_without_a_recorded_run_names_the_command_that_measures_it(
    bench: Bench, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    every = use_case.recorded_runs
    monkeypatch.setattr(use_case, "recorded_runs", lambda bench: tuple(r for r in every(bench) if r.run.op != "relu"))
    assert first_of(bench, "relu") is None
    assert main(["gallery", "--op", "relu"]) == 0
    assert "not recorded; `kernelviz run relu` measures it here" in capsys.readouterr().out
    (relu,) = (r for r in kv.gallery().to_dict("records") if r["op"] == "relu")
    assert relu["command"] == "kernelviz run relu"
