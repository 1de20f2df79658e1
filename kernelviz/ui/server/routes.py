"""What the server answers beside the pages: its health, and a run's events as they happen (server-sent events).

Paths carry `server.baseUrlPath`, as Streamlit's own routes do.
"""

from __future__ import annotations

import importlib
import json
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import assert_never

import anyio
import anyio.to_thread
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from streamlit import config

import kernelviz.bench
from kernelviz.bench import Bench, Progress
from kernelviz.core.errors import UnknownRun
from kernelviz.core.events import (
    CaseDone,
    CaseStep,
    CheckDone,
    DeviceBusy,
    Event,
    InspectionDone,
    RoofDone,
    RunEnded,
    RunQueued,
    TimelineTaken,
    WorkerStarting,
)
from kernelviz.core.result import Failure, Result
from kernelviz.metrics.roofs import roof_name
from kernelviz.metrics.summary import STAGE_WORDS, time_words
from kernelviz.text.selftest import check_words
from kernelviz.ui.server import sockets

QUIET_S = 2.0
"""After this long without an event a comment is sent, so that proxies keep the line and a closed browser is noticed."""
STREAM_S = 10.0
"""A stream ends after this and the browser takes it up again by its last event, so a server can stop: it waits for open
answers, however long a run takes."""
FOLLOWERS = 256
"""Each open browser tab waits in a thread of its own; more than this many are refused with 503."""
MOST_DIGITS = 18
"""Of the number of an event; a longer one is none."""


def base_path() -> str:
    """The prefix of every path, without a slash at its end.

    >>> base_path()
    ''
    """
    path = str(config.get_option("server.baseUrlPath") or "").strip("/")
    return f"/{path}" if path else ""


def events_path(run_id: str) -> str:
    """Where a browser follows a run."""
    return f"{base_path()}/api/runs/{run_id}/events"


@asynccontextmanager
async def lifespan(_app: object) -> AsyncIterator[None]:
    """Make the bench before the first page asks for it, and stop its workers with the server."""
    sockets.send_at_once()
    bench = await anyio.to_thread.run_sync(kernelviz.bench.current)
    threading.Thread(target=_import_pages, name="imports", daemon=True).start()
    try:
        yield
    finally:
        await anyio.to_thread.run_sync(bench.close)


def _import_pages() -> None:
    """What the first page would import while somebody waits: charts, tables, pandas; 0.6 s."""
    for name in ("kernelviz.ui.bench.charts", "streamlit.elements.plotly_chart", "streamlit.elements.arrow"):
        importlib.import_module(name)


async def health(_request: Request) -> JSONResponse:
    """The state of each device's worker; 200 as long as the server can tell."""
    found = await anyio.to_thread.run_sync(lambda: kernelviz.bench.current().health())
    return JSONResponse(found, headers={"Cache-Control": "no-store"})


def told(event: Event, progress: Progress) -> dict[str, object]:
    """An event as a page needs it: words and counts, no samples."""
    counts: dict[str, object] = {
        "status": progress.status,
        "done": progress.done,
        "failed": progress.failed,
        "total": progress.total,
        "ahead": progress.ahead,
    }
    match event:
        case RunQueued():
            return {**counts, "kind": "queued", "ahead": event.ahead, "words": event.words}
        case DeviceBusy():
            return {**counts, "kind": "busy", "words": f"waiting for the device: {event.holder}"}
        case WorkerStarting():
            return {**counts, "kind": "starting", "words": f"starting a worker: {event.reason}"}
        case CaseStep():
            said = {"case": event.case.key, "step": event.step, "fraction": event.fraction}
            return {**counts, "kind": "step", **said}
        case CaseDone():
            return {**counts, "kind": "done", "case": event.result.case.key, "words": _outcome_words(event.result)}
        case RoofDone():
            return {**counts, "kind": "roof", "words": f"measured {roof_name(event.roof)}"}
        case CheckDone():
            return {**counts, "kind": "check", "words": f"{event.check.name}: {check_words(event.check)}"}
        case TimelineTaken():
            return {**counts, "kind": "timeline", "words": "pictured one measurement"}
        case InspectionDone():
            return {**counts, "kind": "inspection", "words": "looked at the case"}
        case RunEnded():
            return {**counts, "kind": "ended", "status": event.status, "words": event.message}
        case _:
            assert_never(event)


def _outcome_words(result: Result) -> str:
    outcome = result.outcome
    return f"✕ {STAGE_WORDS[outcome.stage]}" if isinstance(outcome, Failure) else time_words(outcome.device_cold_s)


async def events(request: Request) -> Response:
    """The run's events from `?after=` (or the browser's Last-Event-ID) on, until it ends or the browser goes."""
    bench = kernelviz.bench.current()
    run_id = request.path_params["id"]
    try:
        await anyio.to_thread.run_sync(bench.progress, run_id)
    except UnknownRun as error:
        return JSONResponse({"error": str(error)}, status_code=404)
    if _limiter().available_tokens < 1:
        return JSONResponse({"error": "too many followers; the page falls back to asking"}, status_code=503)
    start = request.headers.get("last-event-id") or request.query_params.get("after") or "0"
    # isdigit holds for "²" too, and int refuses more than 4300 digits.
    after = int(start) if start.isascii() and start.isdigit() and len(start) <= MOST_DIGITS else 0
    return StreamingResponse(
        _stream(bench, run_id, after, request),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


_limits: list[anyio.CapacityLimiter] = []


def _limiter() -> anyio.CapacityLimiter:
    # Own threads: followers must not take those in which Streamlit runs its scripts. Made inside the event loop.
    if not _limits:
        _limits.append(anyio.CapacityLimiter(FOLLOWERS))
    return _limits[0]


async def _stream(bench: Bench, run_id: str, after: int, request: Request) -> AsyncIterator[str]:
    yield "retry: 200\n\n"
    ended, until = False, anyio.current_time() + STREAM_S
    while not ended and anyio.current_time() < until and not await request.is_disconnected():
        following = bench.follow(run_id, after, QUIET_S)
        quiet = True
        while (found := await _next(following)) is not None:
            after, event = found
            quiet, ended = False, isinstance(event, RunEnded)
            progress = await anyio.to_thread.run_sync(bench.progress, run_id, limiter=_limiter())
            yield f"id: {after}\ndata: {json.dumps(told(event, progress))}\n\n"
            if anyio.current_time() > until:
                break
        if quiet:
            yield ": still here\n\n"


async def _next(following: Iterator[tuple[int, Event]]) -> tuple[int, Event] | None:
    return await anyio.to_thread.run_sync(next, following, None, limiter=_limiter(), abandon_on_cancel=True)


def routes() -> list[Route]:
    """The routes, below `server.baseUrlPath`."""
    return [
        Route(f"{base_path()}/api/health", health),
        Route(f"{base_path()}/api/runs/{{id}}/events", events),
    ]
