"""Health and events over HTTP: their content, their order, the first event, and the path."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
import sample_runs as samples
from rehearsed_bench import RehearsedBench
from starlette.applications import Starlette
from starlette.testclient import TestClient
from streamlit import config

import kernelviz.bench
from kernelviz.core.request import RunRequest
from kernelviz.ui.server.routes import lifespan, routes


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> RehearsedBench:
    made = RehearsedBench(faults={"torch_compile": ("crash", "signal 11")}, stored=(samples.run(),))
    monkeypatch.setattr(kernelviz.bench, "current", lambda: made)
    return made


@pytest.fixture
def client(bench: RehearsedBench) -> Iterator[TestClient]:
    with TestClient(Starlette(routes=routes(), lifespan=lifespan)) as made:
        yield made


def _messages(text: str) -> list[dict[str, object]]:
    return [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")]


def _run(bench: RehearsedBench) -> str:
    return bench.run(
        bench.plan(
            RunRequest(op="rmsnorm", sizes={"m": "64", "n": "64,128"}, variants=("torch_eager", "torch_compile"))
        )
    )


def test_health_tells_each_workers_state(client: TestClient) -> None:
    answer = client.get("/api/health")
    assert answer.status_code == 200
    assert answer.json()["devices"]["cpu"]["state"] == "idle"


def test_events_tell_every_case_and_end(client: TestClient, bench: RehearsedBench) -> None:
    answer = client.get(f"/api/runs/{_run(bench)}/events")
    assert answer.headers["content-type"].startswith("text/event-stream")
    told = _messages(answer.text)
    assert told[0]["kind"] == "queued"
    assert [m["kind"] for m in told].count("done") == 4
    assert (told[-1]["kind"], told[-1]["status"], told[-1]["done"], told[-1]["failed"]) == ("ended", "finished", 4, 2)
    assert {m["step"] for m in told if m["kind"] == "step"} == {"binding", "compiling", "measuring"}
    failed = [m["words"] for m in told if m["kind"] == "done" and "torch_compile" in str(m["case"])]
    assert failed == ["✕ crashed", "✕ crashed"]
    assert "samples" not in answer.text


def test_a_browser_that_comes_back_gets_what_it_missed(client: TestClient, bench: RehearsedBench) -> None:
    path = f"/api/runs/{_run(bench)}/events"
    client.get(path)  # to the run's end: from then on every telling has the same counts
    whole = _messages(client.get(path).text)
    assert _messages(client.get(path, headers={"last-event-id": "3"}).text) == whole[3:]
    assert _messages(client.get(f"{path}?after=5").text) == whole[5:]


def test_a_run_that_ended_long_ago_just_ends(client: TestClient) -> None:
    (only,) = _messages(client.get("/api/runs/sample/events").text)
    assert only["kind"] == "ended"


def test_an_unknown_run_is_404_and_says_where_runs_live(client: TestClient) -> None:
    answer = client.get("/api/runs/nope/events")
    assert answer.status_code == 404
    assert "`kernelviz export RUN -o FILE` writes its run to a file" in answer.json()["error"]


def test_a_stream_ends_so_that_the_server_can_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Uvicorn waits for open answers before it stops; a run may take an hour."""
    made = RehearsedBench(compile_s=3600.0)
    monkeypatch.setattr(kernelviz.bench, "current", lambda: made)
    monkeypatch.setattr("kernelviz.ui.server.routes.STREAM_S", 0.5)
    monkeypatch.setattr("kernelviz.ui.server.routes.QUIET_S", 0.05)
    with TestClient(Starlette(routes=routes(), lifespan=lifespan)) as client:
        answer = client.get(f"/api/runs/{_run(made)}/events")
    assert "ended" not in [m["kind"] for m in _messages(answer.text)]
    assert ": still here" in answer.text


def test_the_address_of_bench_leads_to_the_root_with_its_query(client: TestClient) -> None:
    for path, root in (
        ("/bench", "/"),
        ("/bench?op=softmax&run=a%20b", "/?op=softmax&run=a%20b"),
        ("/bench?//x.y/", "/?//x.y/"),
    ):
        answer = client.get(path, follow_redirects=False)
        assert (answer.status_code, answer.headers["location"]) == (307, root)


def test_paths_carry_the_base_path(monkeypatch: pytest.MonkeyPatch) -> None:
    given = config.get_option("server.baseUrlPath")
    monkeypatch.setattr(config, "get_option", lambda name: "/lab/kv/" if name == "server.baseUrlPath" else given)
    paths = ["/lab/kv/bench", "/lab/kv/api/health", "/lab/kv/api/runs/{id}/events", "/lab/kv/assets/{name}"]
    assert [r.path for r in routes()] == paths


@pytest.mark.parametrize("after", ["²", "9" * 5000, "-1", "٣", "x"])
def test_what_is_no_number_of_an_event_begins_at_the_first(
    client: TestClient, bench: RehearsedBench, after: str
) -> None:
    path = f"/api/runs/{_run(bench)}/events"
    answer = client.get(path, params={"after": after})
    assert answer.status_code == 200
    assert _messages(answer.text)[0]["kind"] == "queued"
