"""The History page, run by AppTest from the real entry script over a real store."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

import msgspec
import peers
import pytest
import sample_runs as samples
from streamlit.testing.v1 import AppTest

import kernelviz
import kernelviz.bench
from kernelviz.bench import Bench, Progress
from kernelviz.core.errors import UnknownRun
from kernelviz.core.problem import Method, Plan
from kernelviz.core.run import Run
from kernelviz.formats import encode
from kernelviz.ui.shared.site import pages_folder

MAIN = Path(kernelviz.__file__).parent / "ui" / "server" / "main.py"
Open = Callable[..., AppTest]


@functools.cache
def sample() -> Run:
    return samples.run(shares={"torch_eager": 0.5})


def kept(bench: Bench, number: int, **changes: object) -> str:
    run: Run = msgspec.structs.replace(
        sample(),
        id=f"r{number:03d}",
        title=f"number {number}",
        created_at=f"2026-11-20T{number // 60:02d}:{number % 60:02d}:00+00:00",
        **changes,
    )
    return bench.history.take_in(encode(run))


def opened(**params: str) -> AppTest:
    test = AppTest.from_file(MAIN, default_timeout=30)
    test.run()
    test.switch_page(str(pages_folder() / "history.py"))
    test.query_params.update(params)
    test.run()
    assert not test.exception, test.exception
    return test


def words(test: AppTest) -> str:
    kinds = ("markdown", "caption", "warning", "error", "info", "text")
    return "\n".join(str(e.value) for kind in kinds for e in getattr(test, kind))


def test_an_empty_history_says_what_to_do(bench: Bench) -> None:
    assert "No run is stored on this server yet" in words(opened())


def test_runs_are_listed_searched_and_paged(bench: Bench) -> None:
    for number in range(45):
        kept(bench, number, results=sample().results[:1])
    test = opened()
    assert "45 runs" in words(test)
    assert len([b for b in test.button if b.label == "Manage"]) == 20
    found = opened(q="number r007")
    assert "1 run matching" in words(found)
    assert found.text_input(key="q").value == "number r007"
    assert "No run matches" in words(opened(q="nothing like it"))


@pytest.mark.parametrize(
    ("asked", "shown"), [("3", 3), ("9", 3), ("9" * 5000, 3), ("0", 1), ("²", 1), ("-1", 1), ("x", 1)]
)
def test_the_address_names_the_page_of_the_list(bench: Bench, asked: str, shown: int) -> None:
    for number in range(45):
        kept(bench, number, results=sample().results[:1])
    test = opened(page=asked)
    assert len([b for b in test.button if b.label == "Manage"]) == {1: 20, 3: 5}[shown]
    (pages,) = test.get("pagination")
    assert pages.proto.default == shown, "a default and a set state make Streamlit warn in the log"
    assert not pages.proto.set_value
    test.run()
    assert not test.exception
    assert len([b for b in test.button if b.label == "Manage"]) == {1: 20, 3: 5}[shown]


def test_title_and_note_are_saved(bench: Bench) -> None:
    run_id = kept(bench, 1)
    test = opened(run=run_id)
    test.text_input(key=f"title_{run_id}").set_value("after the tile change")
    test.text_area(key=f"note_{run_id}").set_value("**not bold** <b>x</b>")
    next(b for b in test.button if b.label == "Save").click().run()
    assert not test.exception
    found = bench.history.summary(run_id)
    assert (found.title, found.note) == ("after the tile change", "**not bold** <b>x</b>")


def test_deleting_asks_and_can_be_undone(bench: Bench) -> None:
    run_id = kept(bench, 1)
    test = opened(run=run_id)
    test.button(key=f"delete_{run_id}").click().run()
    assert bench.history.count() == 1
    test.button(key="confirm_delete_no").click().run()
    test.button(key=f"delete_{run_id}").click().run()
    test.button(key="confirm_delete_yes").click().run()
    assert bench.history.count() == 0
    assert "Deleted **number 1**" in words(test)
    test.button(key="undo").click().run()
    assert bench.history.count() == 1
    assert "Deleted **" not in words(test)


def test_a_deleted_run_is_restored_from_the_list_and_from_its_link(bench: Bench) -> None:
    run_id = kept(bench, 1)
    bench.history.delete(run_id)
    test = opened()
    test.button(key=f"restore_{run_id}").click().run()
    assert bench.history.count() == 1
    bench.history.delete(run_id)
    linked = AppTest.from_file(MAIN, default_timeout=30)
    linked.query_params["run"] = run_id
    linked.run()
    assert "This run was deleted" in "\n".join(s.value for s in linked.subheader)
    linked.button(key="restore").click().run()
    assert not linked.exception
    assert len(linked.metric) == 5


def test_a_run_of_another_device_is_not_resumed_here(bench: Bench) -> None:
    run_id = kept(bench, 1, status="interrupted")
    test = opened(run=run_id)
    test.button(key=f"resume_{run_id}").click().run()
    assert "no device 'cuda:0'" in words(test).replace("\\", "")
    assert bench.load(run_id).status == "interrupted"


def test_a_run_is_measured_again_on_this_machine(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    run_id = kept(bench, 1)
    asked: list[tuple[str, str]] = []

    def run(plan: Plan, method: Method, *, owner: str = "", title: str = "") -> str:
        asked.append((plan.device, title))
        return run_id

    monkeypatch.setattr(bench, "run", run)
    test = opened(run=run_id)
    test.button(key=f"again_{run_id}").click().run()
    assert not test.exception
    assert asked == [("cpu", "again: number 1")]


def test_an_unknown_run_stays_unknown(bench: Bench) -> None:
    said = words(opened(run="nope"))
    assert "No run **nope** on this server" in said
    assert "upload it on this page" in said
    assert "No run **" not in words(opened(run=kept(bench, 1)))
    with pytest.raises(UnknownRun):
        bench.load("nope")


def test_the_files_of_one_upload_are_grouped_and_each_refusal_names_its_file(bench: Bench) -> None:
    test = opened()
    good = encode(msgspec.structs.replace(sample(), id="good"))
    files = [("good.json", good, "application/json"), ("empty.json", b"", "text/plain"), ("a.csv", b"a,b", "text/csv")]
    test.file_uploader[0].set_value(files).run()
    assert not test.exception
    assert "**3 files: 1 imported, 2 refused**" in [m.value for m in test.markdown]
    said = [e.value.replace("\\", "") for e in test.error]
    assert said[0] == "**empty.json** could not be imported: the file is empty."
    assert said[1].startswith("**a.csv** could not be imported: its format is not supported")


def test_two_files_with_the_same_run_are_both_listed(bench: Bench) -> None:
    test = opened()
    good = encode(msgspec.structs.replace(sample(), id="good"))
    files = [("one.json", good, "application/json"), ("two.json", good + b"\n", "application/json")]
    test.file_uploader[0].set_value(files).run()
    assert not test.exception
    imported = [m.value.replace("\\", "") for m in test.markdown if "was imported" in m.value]
    assert ["one.json was imported" in imported[0], "two.json was imported" in imported[1]] == [True, True]
    assert bench.history.count() == 1


def test_two_files_of_another_tool_get_titles_that_differ(bench: Bench) -> None:
    """Both hold the same benchmarks, so only the names of the files tell them apart."""
    other = peers.gbench().replace(b'"real_time": ', b'"real_time": 1')
    test = opened()
    files = [("before.json", peers.gbench(), "application/json"), ("after.json", other, "application/json")]
    test.file_uploader[0].set_value(files).run()
    titles = [run.title for run in bench.runs(5)]
    assert len(set(titles)) == len(titles) == 2
    assert {title.rpartition(" (")[2] for title in titles} == {"before.json)", "after.json)"}


def test_a_run_in_the_queue_says_its_position(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    kept(bench, 1)
    waiting = Progress("queued", 0, 0, 1, 2, "", {}, 0)
    running = Progress("running", 3, 0, 9, 0, "", {}, 0, remaining_s=40.0)
    living = [msgspec.structs.replace(run, status="running") for run in bench.runs(1)]
    for progress, said in ((waiting, "2 jobs ahead in the queue; users alternate"), (running, "about 40 s left")):
        monkeypatch.setattr(bench, "progress", lambda _, now=progress: now)
        monkeypatch.setattr(
            bench.history, "find", lambda *_, **__: [msgspec.structs.replace(r, status="running") for r in living]
        )
        assert any(str(c.value).endswith(said) for c in opened().caption)


def test_the_search_filters_the_runs_that_came_with_kernelviz_too(bench: Bench) -> None:
    kept(bench, 1)
    test = opened(q="softmax")
    said = "\n".join(str(e.value) for kind in ("markdown", "caption") for e in getattr(test, kind))
    matching = bench.history.shipped("softmax")
    assert 0 < len(matching) < len(bench.history.shipped())
    assert f"{len(matching)} run{'s' if len(matching) > 1 else ''} matching “softmax”" in said
