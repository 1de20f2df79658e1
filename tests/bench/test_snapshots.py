"""A selection of a run as a run of its own: its cases, its id, its words; and what a document's digest says of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
import sample_runs as samples

from kernelviz.bench import Bench
from kernelviz.bench.history import TITLE_CHARACTERS
from kernelviz.bench.planning import title_of
from kernelviz.bench.snapshots import at_sizes, narrowed, selected
from kernelviz.core import Clock
from kernelviz.core.errors import BadField, UnknownName, UnknownRun
from kernelviz.formats import decode, digest, encode
from kernelviz.formats.integrity import sealed
from kernelviz.metrics.rows import rows
from kernelviz.store import Store

RUN = samples.run()
BASE = RUN.plan.baseline


def test_a_selection_holds_its_cases_and_the_baseline_and_reads_as_a_document() -> None:
    keys = at_sizes(RUN, {"n": "2^11..2^13"})
    made = selected(RUN, variants=("triton_persistent",), problems=keys, title="three sizes", note="why")
    assert made.plan.variants == (BASE, "triton_persistent")
    assert [p.sizes["n"] for p in made.plan.problems] == [2048, 4096, 8192]
    assert len(made.results) == 6
    assert (made.title, made.note, made.status) == ("three sizes", "why", "finished")
    assert decode(encode(made)) == made
    assert made.id != RUN.id
    # The same facts under any words have the same id; the verdicts are those of the whole run.
    assert selected(RUN, variants=("triton_persistent",), problems=keys).id == made.id
    whole = {r.result.case.key: r.verdict for r in rows(RUN, ())}
    assert all(r.verdict == whole[r.result.case.key] for r in rows(made, ()))


@pytest.mark.parametrize("load", ["burst", "sustained"])
def test_a_title_that_nobody_chose_is_that_of_the_selection(load: Clock) -> None:
    method = msgspec.structs.replace(RUN.method, clock=load)
    named = msgspec.structs.replace(RUN, method=method, title=title_of(RUN.plan, RUN.environment.device, method))
    first = [RUN.plan.problems[0].key]
    assert f"{len(RUN.plan.problems)} sizes" in named.title
    assert ("sustained" in named.title) == (load == "sustained")
    for made in (selected(named, problems=first), selected(named, problems=first, title=named.title)):
        assert made.title == title_of(made.plan, RUN.environment.device, method)
        assert "sizes" not in made.title
    assert selected(named, problems=first, title="mine").title == "mine"
    assert selected(named).title == named.title


def test_everything_selected_is_the_run_itself() -> None:
    assert selected(RUN) == RUN
    assert selected(RUN, variants=RUN.plan.variants, problems=[p.key for p in RUN.plan.problems]) == RUN
    named = selected(RUN, title="another name")
    assert (named.id, digest(named)) == (RUN.id, digest(RUN))


def test_a_whole_part_of_an_unfinished_run_is_finished() -> None:
    half = msgspec.structs.replace(RUN, results=RUN.results[: len(RUN.plan.variants)], status="cancelled")
    first = [RUN.plan.problems[0].key]
    assert selected(half, problems=first).status == "finished"
    assert selected(half, problems=[RUN.plan.problems[1].key]).status == "cancelled"


def test_a_case_that_was_given_up_is_not_done() -> None:
    last = RUN.results[-1]
    given_up = samples.failed(last.problem, last.variant, "cancelled", "cancelled")
    run = msgspec.structs.replace(RUN, results=(*RUN.results[:-1], given_up), status="cancelled")
    assert selected(run).status == "cancelled"
    assert selected(run, problems=[RUN.plan.problems[0].key]).status == "finished"


def test_what_the_run_has_not_is_named() -> None:
    with pytest.raises(UnknownName, match=r"triton_persistant.*did you mean 'triton_persistent'"):
        selected(RUN, variants=("triton_persistant",))
    with pytest.raises(BadField, match="none of them"):
        selected(RUN, problems=("no such",))
    with pytest.raises(BadField, match="n is 1024, 2048, 4096"):
        at_sizes(RUN, {"n": "3"})
    with pytest.raises(UnknownName, match="axis 'k'"):
        at_sizes(RUN, {"k": "3"})
    assert narrowed(RUN, ("gone", "triton_persistent")).plan.variants == (BASE, "triton_persistent")


def test_the_use_case_refuses_words_that_are_too_long(tmp_path: Path) -> None:
    bench = Bench(Store.open(tmp_path), (samples.CPU,))
    try:
        run_id = bench.history.take_in(encode(RUN))
        made = bench.history.snapshot(run_id, variants=("triton_persistent",), title="  two\nlines ")
        assert made.title == "two lines"
        assert bench.load(run_id).title == RUN.title, "the stored run stays as it was"
        with pytest.raises(BadField, match="characters"):
            bench.history.snapshot(run_id, title="x" * (TITLE_CHARACTERS + 1))
        with pytest.raises(UnknownRun):
            bench.history.snapshot("no-such-run")
        again = bench.history.take_in(encode(made))
        assert again == made.id
        assert digest(bench.load(again)) == digest(made)
    finally:
        bench.close()


def test_a_documents_digest_tells_whether_its_facts_were_changed() -> None:
    data = encode(RUN)
    assert json.loads(data)["digest"] == digest(RUN)
    assert sealed(data) == "unchanged"
    words = json.loads(data) | {"title": "another", "note": "and more", "status": "interrupted"}
    assert sealed(json.dumps(words)) == "unchanged", "title and note are no facts"
    for change in (
        lambda d: d["results"][0]["outcome"]["device_cold_s"].__setitem__("estimate", 1e-9),
        lambda d: d["plan"].__setitem__("baseline", "triton_persistent"),
        lambda d: d["environment"]["device"].__setitem__("name", "H300"),
        lambda d: d["method"].__setitem__("seeds", 1),
        lambda d: d["results"].pop(),
    ):
        found = json.loads(data)
        change(found)
        assert sealed(json.dumps(found)) == "changed"


def test_the_digest_of_another_version_holds_too() -> None:
    """A writer that knew one field more, and one that knew one less: both digests are of what they wrote."""
    from kernelviz.formats.document import digest_of

    found = json.loads(encode(RUN))
    for result in found["results"]:
        result.pop("trust")
    found["environment"]["a_new_field"] = {"b": 1, "a": [1.5, None]}
    found["method"].pop("ratio_half_width")
    found["plan"]["plugins"] = []
    found["digest"] = digest_of([found[k] for k in ("plan", "environment", "method", "results")])
    assert sealed(json.dumps(found, indent=1)) == "unchanged"
    assert digest(decode(json.dumps(found))) != found["digest"], "this version would write other fields"


def test_paths_of_plug_ins_are_no_facts_and_other_files_have_no_seal() -> None:
    own = msgspec.structs.replace(RUN, plan=msgspec.structs.replace(RUN.plan, plugins=("/home/me/mine.py",)))
    assert digest(own) == digest(RUN)
    assert sealed(encode(own)) == "unchanged"
    without = json.loads(encode(RUN))
    del without["digest"]
    assert sealed(json.dumps(without)) == "unsealed"
    for other in (b"", b"PAR1", b"{}", b"[1]", b'{"benchmarks": []}'):
        assert sealed(other) is None


def as_javascript_writes(value: Any) -> Any:
    match value:
        case float() if value.is_integer() and abs(value) < 2**53:
            return int(value)
        case dict():
            return {k: as_javascript_writes(v) for k, v in value.items()}
        case list():
            return [as_javascript_writes(v) for v in value]
        case _:
            return value


def test_the_seal_holds_where_only_the_letters_of_the_file_changed() -> None:
    saved = json.loads(encode(RUN))
    saved["method"]["budget_s"] = 1.0
    saved["digest"] = digest(decode(json.dumps(saved)))
    again = as_javascript_writes(saved)
    assert json.dumps(again) != json.dumps(saved)
    assert sealed(json.dumps(again)) == "unchanged"
    again["method"]["budget_s"] = 2
    assert sealed(json.dumps(again)) == "changed"
    again["method"]["budget_s"] = "no number"
    assert sealed(json.dumps(again)) == "changed"
    assert sealed(b"\xef\xbb\xbf" + encode(RUN)) == "unchanged", "a mark that Windows puts before it"
    assert sealed("\ufeff" + encode(RUN).decode()) == "unchanged"
