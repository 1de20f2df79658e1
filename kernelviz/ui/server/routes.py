"""HTTP routes of the server besides the pages: its health, the events of a run (server-sent events), and our own files.

Their paths start with `server.baseUrlPath`, like Streamlit's own routes.
"""

import contextlib
import gc
import importlib
import json
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import cache
from typing import assert_never

import anyio
import anyio.to_thread
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

import kernelviz.bench
from kernelviz.bench import Bench, Progress, gallery
from kernelviz.core import (
    CaseDone,
    CaseStep,
    CheckDone,
    CodeCaptured,
    CompiledAhead,
    CountersDone,
    DeviceBusy,
    Event,
    Failure,
    InspectionDone,
    KernelvizError,
    Result,
    RoofDone,
    RunEnded,
    RunQueued,
    TimelineDone,
    UnknownRun,
    WorkerStarting,
)
from kernelviz.metrics.figures import figure_of
from kernelviz.metrics.rows import rows
from kernelviz.metrics.summary import summary
from kernelviz.metrics.tuning import stopped_early
from kernelviz.text import describe_check, describe_queue_position, format_roof_name, format_time
from kernelviz.text.counters import describe_uncounted
from kernelviz.text.events import describe_compiled, describe_remaining
from kernelviz.text.failures import format_stage
from kernelviz.ui.bench.form import FIRST
from kernelviz.ui.server import assets, connections, sockets
from kernelviz.ui.server.assets import base_path
from kernelviz.ui.shared import site

QUIET_S = 2.0
"""After this long without an event a comment is sent, so that proxies keep the connection and a closed browser is noticed."""
STREAM_S = 10.0
"""A stream ends after this time, and the browser continues it from its last event. A stopping server waits for open
responses, so they must not last as long as a run."""
FOLLOWERS = 256
"""Each open browser tab waits in a thread of its own; further ones get status 503."""
MOST_DIGITS = 18
"""At most this many digits are accepted as the number of an event."""


def events_path(run_id: str) -> str:
    """The path at which a browser follows a run."""
    return f"{base_path()}/api/runs/{run_id}/events"


@asynccontextmanager
async def lifespan(_app: object) -> AsyncIterator[None]:
    """Create the bench before the first page needs it, and stop its workers with the server."""
    sockets.send_at_once()
    connections.close_unfinished()
    bench = await anyio.to_thread.run_sync(kernelviz.bench.current)
    threading.Thread(target=_prepare_pages, args=(bench,), name="preparation", daemon=True).start()
    try:
        yield
    finally:
        await anyio.to_thread.run_sync(bench.close)


def _prepare_pages(bench: Bench) -> None:
    """What the first page needs and all sessions share: charts, tables and pandas, the state of the devices, and the recorded run
    that it shows. Otherwise that page would take 0.6 s longer, and those that open at once with it would wait, too."""
    for name in ("kernelviz.ui.bench.charts", "streamlit.elements.arrow"):
        importlib.import_module(name)
    with contextlib.suppress(KernelvizError):  # the page says what is wrong
        for device in bench.devices()[:1]:
            bench.notices(device.id)
        first = gallery.first_of(bench, FIRST)
        if first is not None:
            run = bench.history.load(first.id)
            summary(rows(run, bench.roofs_of(run)))
    # Streamlit searches all objects for garbage after each run of a page. What imports make stays, and searching it took 0.11 of
    # the 0.29 s of processor time of a page.
    gc.freeze()


async def health(_request: Request) -> JSONResponse:
    """The state of each device's worker; status 200 as long as the server responds."""
    states = await anyio.to_thread.run_sync(lambda: kernelviz.bench.current().health())
    return JSONResponse(states, headers={"Cache-Control": "no-store"})


def event_message(event: Event, progress: Progress) -> dict[str, object]:
    """An event for the page: text and counts, without samples."""
    counts: dict[str, object] = {
        "status": progress.status,
        "done": progress.done,
        "failed": progress.failed,
        "total": progress.total,
        "ahead": progress.ahead,
        "left": str(describe_remaining(progress.remaining_s)),
    }
    match event:
        case RunQueued():
            return {**counts, "kind": "queued", "ahead": event.ahead, "words": str(describe_queue_position(event))}
        case DeviceBusy():
            return {**counts, "kind": "busy", "words": f"waiting for the device: {event.holder}"}
        case WorkerStarting():
            return {**counts, "kind": "starting", "words": f"starting the measuring process: {event.reason}"}
        case CaseStep():
            return {
                **counts, "kind": "step", "case": event.case.key, "step": event.step, "fraction": event.fraction,
            }  # fmt: skip
        case CompiledAhead():
            return {**counts, "kind": "compiled", "words": str(describe_compiled(event))}
        case CodeCaptured():
            return {**counts, "kind": "code", "case": event.case.key}
        case CaseDone():
            return {**counts, "kind": "done", "case": event.result.case.key, "words": _format_outcome(event.result)}
        case RoofDone():
            return {**counts, "kind": "roof", "words": f"measured {format_roof_name(event.roof)}"}
        case CheckDone():
            return {**counts, "kind": "check", "words": f"{event.check.name}: {describe_check(event.check)}"}
        case TimelineDone():
            return {**counts, "kind": "timeline", "words": "recorded the timing diagram"}
        case InspectionDone():
            return {**counts, "kind": "inspection", "words": "inspected the case"}
        case CountersDone():
            end = "read its counters" if event.uncounted is None else str(describe_uncounted(event.uncounted))
            return {**counts, "kind": "counters", "words": f"{event.case.variant}: {end}"}
        case RunEnded():
            return {**counts, "kind": "ended", "status": event.status, "words": event.message}
        case _:
            assert_never(event)


def _format_outcome(result: Result) -> str:
    outcome = result.outcome
    if isinstance(outcome, Failure):
        return f"✕ {format_stage(outcome)}"
    time = str(format_time(figure_of(outcome, "cold")))
    return time if stopped_early(result) is None else f"≈ {time}, by one block: stopped early"


async def events(request: Request) -> Response:
    """The events of the run after `?after=` (or the browser's Last-Event-ID), until the run ends or the browser disconnects."""
    bench = kernelviz.bench.current()
    run_id = request.path_params["id"]
    try:
        await anyio.to_thread.run_sync(bench.progress, run_id)
    except UnknownRun as error:
        return JSONResponse({"error": str(error)}, status_code=404)
    if _limiter().available_tokens < 1:
        return JSONResponse({"error": "too many open streams; the page polls instead"}, status_code=503)
    start = request.headers.get("last-event-id") or request.query_params.get("after") or "0"
    # isdigit is also true for "²", and int rejects more than 4300 digits.
    after = int(start) if start.isascii() and start.isdigit() and len(start) <= MOST_DIGITS else 0
    return StreamingResponse(
        _stream(bench, run_id, after, request),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


@cache
def _limiter() -> anyio.CapacityLimiter:
    # Own threads, so that streams do not use those in which Streamlit runs its scripts. Created inside the event loop.
    return anyio.CapacityLimiter(FOLLOWERS)


async def _stream(bench: Bench, run_id: str, after: int, request: Request) -> AsyncIterator[str]:
    yield "retry: 200\n\n"
    ended, until = False, anyio.current_time() + STREAM_S
    while not ended and anyio.current_time() < until and not await request.is_disconnected():
        following = bench.follow(run_id, after, QUIET_S)
        quiet = True
        while (numbered := await _next(following)) is not None:
            after, event = numbered
            quiet, ended = False, isinstance(event, RunEnded)
            progress = await anyio.to_thread.run_sync(bench.progress, run_id, limiter=_limiter())
            yield f"id: {after}\ndata: {json.dumps(event_message(event, progress))}\n\n"
            if anyio.current_time() > until:
                break
        if quiet:
            yield ": still here\n\n"


async def _next(following: Iterator[tuple[int, Event]]) -> tuple[int, Event] | None:
    return await anyio.to_thread.run_sync(next, following, None, limiter=_limiter(), abandon_on_cancel=True)


async def to_bench(request: Request) -> Response:
    """From the address that somebody types for Bench, which is at the root, to it, with what follows the question mark."""
    query = f"?{request.url.query}" if request.url.query else ""
    return RedirectResponse(f"{base_path()}/{query}")


def routes() -> list[Route]:
    """The routes, below `server.baseUrlPath`."""
    return [
        Route(f"{base_path()}/{site.DEFAULT}", to_bench),
        Route(f"{base_path()}/api/health", health),
        Route(f"{base_path()}/api/runs/{{id}}/events", events),
        *assets.routes(),
    ]
