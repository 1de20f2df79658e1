"""The compact form of recorded runs: everything that is shown of a run stays the same, and a damaged file is refused."""

from __future__ import annotations

import json
import lzma
import math
import re
from dataclasses import replace as replace_all
from pathlib import Path
from typing import Any

import earlier_runs
import msgspec
import pytest
import sample_code
import sample_figures as figures
import sample_runs as samples
import turns
from msgspec.structs import replace
from read_here import read
from rehearsed_bench import RehearsedBench

from kernelviz.bench import recording
from kernelviz.core import BadField, DocumentError, Run, Timing
from kernelviz.formats import compact, document, exports, shipped_runs
from kernelviz.formats.validation import checked
from kernelviz.metrics.figures import extent, quantiles
from kernelviz.metrics.insight import insight
from kernelviz.metrics.quality import quality, slow_blocks
from kernelviz.metrics.rows import rows
from kernelviz.metrics.samples import BY_MEDIAN, by_block, records, spread
from kernelviz.metrics.summary import summary
from kernelviz.metrics.winner import winners
from kernelviz.plots import samples_by_order
from kernelviz.text import describe_quality, format_time, format_verdict

FOLDER = Path(__file__).parents[2] / "kernelviz" / "shipped"
CLOCK = re.compile(r"SM [0-9–]+ MHz")
NUMBER = re.compile(r"[0-9][0-9.,]*")


def like(here: list[tuple[object, ...]], there: list[tuple[object, ...]]) -> bool:
    """Whether both show the same words, and numbers that differ by at most 0.05 %, except the SM clock, which is rounded."""
    first, second = (CLOCK.sub("", str(side).replace(" (only their means are stored)", "")) for side in (here, there))
    numbers = [[float(n.strip(".,").replace(",", "")) for n in NUMBER.findall(text)] for text in (first, second)]
    return NUMBER.sub("", first) == NUMBER.sub("", second) and numbers[0] == pytest.approx(numbers[1], rel=5e-4)


def shown(run: Run) -> list[tuple[object, ...]]:
    """Times with intervals, verdicts, quality and winners of a run, as text."""
    listed: list[tuple[object, ...]] = []
    for headline in ("cold", "warm"):
        table = rows(run, run.environment.roofs, headline)
        for row in table:
            graded = quality(row.result, headline, run.method.clock)
            times = tuple(
                str(format_time(f)) for f in (row.result.timing.figures.values() if row.result.timing else ())
            )
            said = (
                str(format_time(row.figure)) if row.figure else None,
                str(format_verdict(row.verdict)) if row.verdict else None,
                f"{row.speed_up:.4g}" if row.speed_up else None,
                f"{row.efficiency:.4g}" if row.efficiency else None,
                graded and (graded.level, str(describe_quality(graded))),
            )
            listed.append((row.result.case.key, *times, *said))
        listed += [(w.problem.key, w.names) for w in winners(table, headline)]
    table = rows(run, run.environment.roofs)
    total = summary(table)
    assert total is None or total.fastest
    return [*listed, (insight(table) is None,)]


def test_what_is_shown_of_a_recorded_run_stays_the_same() -> None:
    """With all samples, and with the mean of each block and the extent of all samples, which needs at most 1.15 kB
    a case, also for the shortest times. One of three runs at each commit."""
    run = earlier_runs.load(("h200-softmax", "h200-matmul", "h200-add")[turns.seed() % 3])
    for kept, most in ((run, 4000), (by_block(run), 1150)):
        data = compact.encode(kept)
        back = compact.decode(data)
        assert len(data) < most * len(run.results)
        assert compact.encode(back) == data, "the second time loses nothing"
        assert like(shown(back), shown(run))
        for before, after in zip(kept.results, back.results, strict=True):
            assert isinstance(before.outcome, Timing)
            for field, figure in before.outcome.figures.items():
                other = getattr(after.outcome, field)
                assert (other.estimate, other.low, other.high) == (figure.estimate, figure.low, figure.high)
                assert other.samples == pytest.approx(figure.samples, rel=0, abs=0.6e-12)
                assert [b.round for b in other.blocks] == [b.round for b in figure.blocks or ()]
                assert other.sample_count == figure.sample_count
                clocks_mhz = [
                    ((b.clock_hz or 0.0) / 1e6, (o.clock_hz or 0.0) / 1e6)
                    for b, o in zip(figure.blocks, other.blocks, strict=True)
                ]
                assert all(abs(clock - back) <= 1.5 for clock, back in clocks_mhz)
                assert slow_blocks(other.blocks) == slow_blocks(figure.blocks)


def test_the_means_of_blocks_keep_what_is_computed_from_blocks() -> None:
    run = figures.run()
    small = by_block(run)
    assert document.decode(document.encode(small)) == small == by_block(small)
    seen = set()
    for before, after in zip(run.results, small.results, strict=True):
        if not isinstance(before.outcome, Timing):
            assert after == before
            continue
        for field, figure in before.outcome.figures.items():
            other = getattr(after.outcome, field)
            seen.add(other.by_block)
            same = replace(other, samples=figure.samples, percentiles_s=msgspec.UNSET, extent_s=msgspec.UNSET)
            assert same == figure
            assert quantiles(other) == quantiles(figure)
            assert extent(other) == extent(figure) is not None
            assert (other.sample_count, len(other.samples)) == (figure.sample_count, len(figure.blocks or ()))
            was, now = spread(before, field), spread(after, field)
            assert was is not None
            assert now is not None
            # The order of a host's time is judged by block medians, and by the means where only these are kept.
            order = {"drift": was.drift, "lag_1": was.lag_1} if field in BY_MEDIAN else {}
            assert replace_all(now, figure=was.figure, **order) == was
    assert seen == {True}
    (one, *_) = small.results
    assert {r["calls"] for r in records(one, ("call_eager_s",))} == {b.size for b in one.timing.call_eager_s.blocks}
    drawn = samples_by_order(one.timing.device_cold_s, "device_cold_s", op="add", variant=one.variant)
    assert drawn.data[0].name.startswith("blocks of ")
    assert len(drawn.data[0].x) == len(one.timing.device_cold_s.blocks)
    assert "only their means are stored" in str(describe_quality(quality(one, "cold")))
    for text in exports()["gbench"].encode(small), exports()["nvbench"].encode(small):
        assert text


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"percentiles_s": (3e-6, 2e-6, 4e-6)}, "falling order"),
        ({"percentiles_s": (1e-6, 2e-6, math.inf)}, "percentiles_s"),
        ({"extent_s": (1e-6, 3e-6, 2e-6)}, "minimum, mean and maximum in falling order"),
        ({"extent_s": (math.nan, 2e-6, 3e-6)}, "extent_s"),
        ({"samples": (1e-6,)}, "with one mean for each block, its blocks stand for"),
        ({"blocks": None}, "blocks"),
    ],
)
def test_a_figure_whose_blocks_and_values_differ_is_refused(wrong: dict[str, object], said: str) -> None:
    run = by_block(figures.run())
    result = run.results[0]
    cold = replace(result.timing.device_cold_s, **wrong)
    broken = replace(run, results=(replace(result, outcome=replace(result.outcome, device_cold_s=cold)),))
    with pytest.raises(DocumentError, match=said):
        checked(broken)


@pytest.mark.parametrize("run", [samples.mixed(), figures.run(), samples.run([])], ids=["mixed", "figures", "empty"])
def test_any_run_can_be_compact(run: Run) -> None:
    back = compact.decode(compact.encode(run))
    assert [r.case for r in back.results] == [r.case for r in run.results]
    assert replace(back, results=()) == replace(document.decode(document.encode(run)), results=())
    assert shown(back) == shown(run)


def test_a_damaged_file_is_refused() -> None:
    data = compact.encode(samples.run())
    for wrong in (b"", b"KVZ1", data[: len(data) // 2], b"gzip" + data[4:], data[:-3]):
        with pytest.raises(DocumentError):
            compact.decode(wrong)


def test_a_compact_file_is_imported_with_its_digest_and_its_code() -> None:
    """The content decides, as for any format. Files of the package from before the digest are read, too."""
    for run in (by_block(figures.run()), samples.mixed(), sample_code.run()):
        data = compact.encode(run)
        (back,) = read(data)
        assert replace(back, code=msgspec.UNSET) == compact.decode(data)
        assert {c.digest for c in back.code or ()} == {c.digest for c in run.code or ()}
        assert checked(back) is back
    (shipped,) = read((FOLDER / "h200-copy.kvz").read_bytes())
    assert shipped == shipped_runs.load("h200-copy")


def repacked(data: bytes, **changes: object) -> bytes:
    """The file with other values in its head."""
    end = 8 + int.from_bytes(data[4:8], "little")
    head = json.loads(lzma.decompress(data[8:end]))
    head.update({name: change(head[name]) if callable(change) else change for name, change in changes.items()})
    packed = lzma.compress(json.dumps(head).encode())
    return data[:4] + len(packed).to_bytes(4, "little") + packed + data[end:]


def with_other_time(run: dict[str, Any]) -> dict[str, Any]:
    outcome = next(r["outcome"] for r in run["results"] if r["outcome"].get("device_cold_s"))
    outcome["device_cold_s"]["estimate"] *= 0.9
    return run


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"run": with_other_time}, "digest does not match"),
        ({"run": lambda run: run | {"schema": "kernelviz/9"}}, "newer kernelviz"),
        ({"figures": lambda figures: figures | {"energy": [0]}}, "'energy' is no figure"),
        ({"figures": lambda figures: {name: [10**6] for name in figures}}, "cannot be read|too short|no figure"),
        ({"columns": lambda columns: columns[1:]}, "cannot be read|too short"),
        ({"columns": lambda columns: [[n, 2**62, w] for n, _, w in columns]}, "too short"),
        ({"columns": lambda columns: [[n, -1, w] for n, _, w in columns]}, "too short"),
        ({"columns": lambda columns: [[n, c, 9] for n, c, _ in columns]}, "too short"),
        ({"body_bytes": 10**9, "code": [["0" * 64, 5]]}, "unpacked"),
        ({"code": [["0" * 64, -5]], "body_bytes": 1}, "unpacked"),
        ({"digest": ""}, ""),
    ],
)
def test_a_changed_compact_file_is_refused(changes: dict[str, Any], said: str) -> None:
    """Its packed columns have no checksum of their own, so the digest covers them."""
    data = compact.encode(by_block(figures.run()))
    if not said:
        assert compact.read(repacked(data, **changes)) == compact.read(data), "as in files before there was a digest"
        return
    with pytest.raises(DocumentError, match=said):
        compact.read(repacked(data, **changes))
    with pytest.raises(DocumentError):
        read(repacked(data, **changes))


def test_a_recording_is_written_once_with_its_indices(tmp_path: Path) -> None:
    bench = RehearsedBench((replace(samples.CPU, name="Intel(R) Xeon(R)"), samples.H200))
    assert recording.name_of(bench, "add", "cpu") == "intel-r-xeon-r-add"
    add, copy = recording.OpPass("add"), recording.OpPass("copy")
    assert recording.missing(bench, ["add", "copy"], "cuda:0", tmp_path) == (add, copy)
    recording.write(figures.run(), recording.name_of(bench, "add", "cuda:0"), tmp_path)
    assert recording.missing(bench, ["add", "copy"], "cuda:0", tmp_path) == (copy,)
    (tmp_path / "h200-add.kvz").unlink()
    both = recording.OpPass("softmax"), recording.OpPass("softmax", "backward")
    assert recording.missing(bench, ["softmax", "copy"], "cuda:0", tmp_path) == (*both, copy)
    assert recording.missing(bench, ["softmax", "copy"], "cuda:0", tmp_path, part="2/2") == (copy,)
    assert recording.missing(bench, ["softmax"], "cuda:0", tmp_path, direction="backward") == both[1:]
    assert recording.name_of(bench, "softmax", "cuda:0", "backward") == "h200-softmax-backward"
    assert {p.direction for p in recording.plan_of(bench, "softmax", "cuda:0", "backward").problems} == {"backward"}
    every, some = (recording.plan_of(bench, "add", "cuda:0", most_sizes=most).problems for most in (100, 6))
    assert len(every) > len(some) == 5
    assert (some[0], some[-1]) == (every[0], every[-1])
    with pytest.raises(BadField, match="copy has no backward pass"):
        recording.missing(bench, ["copy"], "cuda:0", tmp_path, direction="backward")
    for wrong in ("0/2", "3/2", "half", "1/"):
        with pytest.raises(BadField, match="name one like 1/2 and 2/2 for two GPUs"):
            recording.missing(bench, ["copy"], "cuda:0", tmp_path, part=wrong)
    plan = recording.plan_of(bench, "add", "cuda:0")
    assert {v.name for v in bench.ops()["add"].variants if not v.only_when_named} == {*plan.variants}
    assert recording.write(figures.run(), "h200-own", tmp_path) == (tmp_path / "h200-own.kvz").stat().st_size
    recording.write_indices(tmp_path)
    assert shipped_runs.names_in(tmp_path) == ("h200-own",)
    assert shipped_runs.load_from(tmp_path, "h200-own").id == "h200-own"
    assert b'"h200-own"' in (tmp_path / "index.json").read_bytes()
    assert b'"h200-own"' in (tmp_path / "gallery.json").read_bytes()
