"""Every rendered sentence is replaced by "x": levels, verdicts, counts, refusals, stages and exit codes do not change."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import compared_runs as compared
import earlier_runs
import msgspec
import pytest
import rehearsed_bench as rehearsed
import sample_figures as figures
import sample_runs as samples
import sample_tunings as tunings

from kernelviz import bench as use_cases
from kernelviz.bench import Bench
from kernelviz.cli import main
from kernelviz.core import version_1
from kernelviz.core.cheats import CHEATS
from kernelviz.core.events import CaseDone, Event
from kernelviz.core.problem import QUICK, Problem
from kernelviz.core.result import Failure
from kernelviz.core.run import Run
from kernelviz.formats import decode, encode, read, shipped_runs
from kernelviz.measure.selftest import refusals
from kernelviz.metrics.comparison import compare
from kernelviz.metrics.limiter import limiter
from kernelviz.metrics.quality import quality
from kernelviz.metrics.rows import rows
from kernelviz.metrics.samples import spread
from kernelviz.metrics.summary import summary
from kernelviz.metrics.tuning import tried
from kernelviz.metrics.winner import winners
from kernelviz.store import Store
from kernelviz.text.cells import failures
from kernelviz.text.differences import differences
from kernelviz.text.notes import describe_note
from kernelviz.text.quality import describe_quality_of
from kernelviz.text.text import Text

if TYPE_CHECKING:
    from kernelviz.measure.session.device_session import DeviceSession

PLANTED = str(Path(__file__).parents[1] / "planted.py")
Facts = dict[str, Any]


@pytest.fixture
def nothing_said(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From its call on every text is "x"."""
    return lambda: monkeypatch.setattr(Text, "__str__", lambda _: "x")


def stages(run: Run) -> list[tuple[str, str, tuple[str, ...]]]:
    """Every failure with its stage and the codes of its reasons."""
    return [
        (r.case.key, r.outcome.stage, tuple(str(reason.__struct_config__.tag) for reason in r.outcome.reasons))
        for r in run.results
        if isinstance(r.outcome, Failure)
    ]


def facts_of(run: Run) -> Facts:
    """What follows from a run, without a word of text."""
    found: Facts = {"stages": stages(run)}
    for headline in ("cold", "warm"):
        table = rows(run, run.environment.roofs, headline)  # type: ignore[arg-type]
        quality_of = [quality(r, headline, run.method.clock) for r in run.results]  # type: ignore[arg-type]
        made = summary(table, headline)  # type: ignore[arg-type]
        found[headline] = {
            "verdicts": [(r.result.case.key, r.verdict.kind if r.verdict else None, r.speed_up) for r in table],
            "levels": [None if q is None else (q.level, [(p.name, p.level) for p in q.parts]) for q in quality_of],
            "summary": made,
            "limiters": [limiter(r, run.environment.device, run.environment.roofs, headline) for r in run.results],  # type: ignore[arg-type]
            "drifts": [
                one.drift for r in run.results for f in ("device_cold_s", "call_eager_s") if (one := spread(r, f))
            ],
            "winners": [w.names for w in winners(table, headline)],  # type: ignore[arg-type]
            "failures": [len(group) for group in failures(table).values()],
        }
    if run.plan.search is not None:
        of = tried(run)
        found["tuning"] = (of.tried, of.failed, of.refused, of.cancelled, [len(r.variants) for r in of.failures])
    return found


def compared_facts(a: Run, b: Run, **how: Any) -> Facts:
    found = compare(a, b, **how)
    return {
        "words": [(p.key, p.kind, p.reason, p.broken) for p in found.pairs],
        "counts": found.counts,
        "slower": [p.key for p in found.slower_than(0.02)],
        "noise": (found.noise, found.noise_cases),
        "differences": [(d.of, d.what, d.stops) for d in differences(found)],
    }


SAMPLES = (figures.run(), samples.mixed(), tunings.run())


@pytest.mark.parametrize("name", shipped_runs.names())
def test_what_a_shipped_run_says_rests_on_no_text(name: str, nothing_said: Callable[[], None]) -> None:
    run = shipped_runs.load(name)
    before = facts_of(run)
    others = [v for v in run.plan.variants if v != run.plan.baseline][:1]
    sides = compared_facts(run, run, variant_a=run.plan.baseline, variant_b=others[0])
    written = encode(run)
    nothing_said()
    assert str(describe_quality_of(run.results[0])) == "x", "no text is left"
    assert facts_of(decode(written)) == before
    assert compared_facts(run, run, variant_a=run.plan.baseline, variant_b=others[0]) == sides


@pytest.mark.parametrize("run", SAMPLES, ids=lambda r: r.id)
def test_what_a_sample_says_rests_on_no_text(run: Run, nothing_said: Callable[[], None]) -> None:
    before = facts_of(run)
    nothing_said()
    assert facts_of(run) == before
    assert facts_of(read(encode(run))[0]) == before, "a document written without a word says the same"


def test_two_runs_compare_alike_without_text(nothing_said: Callable[[], None]) -> None:
    sides = [
        (compared.before(), compared.after({"triton_persistent": 1.05}, wrong="triton_persistent")),
        (compared.before(), compared.after(method={"clock": "sustained"})),
        (compared.before(), compared.after(figure={"timer": "events"}, device={"driver": "600"})),
    ]
    before = [compared_facts(a, b) for a, b in sides]
    nothing_said()
    assert [compared_facts(a, b) for a, b in sides] == before


def opened(*plugins: str) -> DeviceSession:
    """A session on the CPU that has 4 MB of cache to flush: what is refused does not depend on times."""
    from kernelviz.measure.session.device_session import DeviceSession, open_session
    from kernelviz.measure.timing.host import HostTimer

    session = open_session("cpu", plugins)
    return DeviceSession(session.device, session.ops, HostTimer(2**22))


def test_planted_faults_are_refused_alike_without_text(nothing_said: Callable[[], None]) -> None:
    session = opened(PLANTED)
    names = tuple(v.name for v in session.ops["add"].variants if v.name in PLANTED_NAMES)
    assert set(names) == PLANTED_NAMES

    def outcomes() -> dict[str, tuple[str, tuple[type, ...]]]:
        events: list[Event] = []
        problem = Problem(op="add", sizes={"n": 1000}, dtype="fp32")
        session.measure(problem, ("honest", *names), "honest", QUICK, events.append, lambda: False)
        done = [e.result for e in events if isinstance(e, CaseDone)]
        return {
            r.variant: (r.outcome.stage, tuple(map(type, r.outcome.reasons)))
            for r in done
            if isinstance(r.outcome, Failure)
        }

    before = outcomes()
    assert before.keys() == set(names)
    nothing_said()
    assert outcomes() == before


PLANTED_NAMES = {
    "writes_nothing",
    "is_wrong",
    "remembers",
    "changes_its_input",
    "has_another_shape",
    "raises_in_bind",
    "runs_out_of_memory",
    "computes_in_half",
}


def test_the_selftest_knows_a_cheat_without_its_words(nothing_said: Callable[[], None]) -> None:
    nothing_said()
    from kernelviz.measure.selftest import selftest as run_selftest

    session = opened()
    events: list[Any] = []
    run_selftest(
        session.state,
        session.ops,
        lambda ops: type(session)(session.device, ops, session.timer),
        events.append,
        lambda: False,
        only=tuple(p.name for p in refusals.CPU),
    )
    found = [e.check for e in events]
    assert len(found) == len(refusals.CPU)
    assert all(check.passed for check in found), [c.name for c in found if not c.passed]
    assert len(CHEATS) == 10


def test_commands_end_alike_without_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nothing_said: Callable[[], None]
) -> None:
    made = Bench(Store.open(tmp_path), (samples.CPU,))
    worse = compared.after({"triton_persistent": 1.05})
    wrong = compared.after({"triton_block_per_row": 1.0}, wrong="triton_block_per_row")
    files = {"before": compared.before(), "after": worse, "wrong": wrong, "apart": samples.run(op="add", dtype="fp32")}
    for name, run in files.items():
        (tmp_path / f"{name}.json").write_bytes(encode(run))

    def path(name: str) -> str:
        return str(tmp_path / f"{name}.json")

    def codes() -> Counter[str]:
        found = {}
        monkeypatch.setattr(use_cases, "current", lambda: made)
        for a, b in (
            ("before", "before"),
            ("before", "after"),
            ("after", "before"),
            ("before", "wrong"),
            ("before", "apart"),
        ):
            found[f"compare {a} {b}"] = main(["compare", path(a), path(b)])
        found["limit"] = main(["compare", path("before"), path("after"), "--fail-slower-than", "10%"])
        rehearsing = rehearsed.RehearsedBench((samples.H200, samples.CPU), roofs=samples.H200_ROOFS)
        monkeypatch.setattr(use_cases, "current", lambda: rehearsing)
        for options in ((), ("--variants", "torch_eager,triton_block"), ("--variants", "none_such"), ("--clock", "no")):
            found[f"run {options}"] = main(["run", "add", "--sweep", "n=2^10..2^11", *options])
        return Counter(found)

    before = codes()
    assert {0, 2, 3} <= set(before.values())
    nothing_said()
    assert codes() == before
    made.close()


def test_old_sentences_are_read_by_one_module_alone(nothing_said: Callable[[], None]) -> None:
    """The upgrade reads what documents say, not what this version would say."""
    nothing_said()
    note = version_1.note_of("warm: what tracing adds to it is not known")
    assert (note.figure, str(describe_note(note))) == ("warm", "x")
    name = earlier_runs.names()[0]
    raw = (earlier_runs.FOLDER / f"{name}.json.gz").read_bytes()
    given = json.loads(gzip.decompress(raw))
    assert given["schema"] == "kernelviz/1"
    again = msgspec.to_builtins(decode(json.dumps(given)))
    sentences = [n for r in given["results"] for n in (r.get("conditions") or {}).get("notes", ())]
    notes = [n for r in again["results"] for n in (r.get("conditions") or {}).get("notes", ())]
    assert len(notes) == len(sentences)
    assert all(n["kind"] != "text" for n in notes), "every sentence that ships is known"
