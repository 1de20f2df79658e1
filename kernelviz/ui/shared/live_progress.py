"""The progress of a run: a bar and an entry for each case that is being measured, updated by server-sent events.

The page itself reruns at most every 0.8 s, when cases are done, to redraw its charts. If a proxy blocks EventSource, a
fragment that polls each second takes over.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import streamlit as st

from kernelviz.bench import Bench, Progress
from kernelviz.core import LIVING, Device, RunEnded, RunQueued, UnknownRun
from kernelviz.text import describe_queue_position
from kernelviz.text.events import describe_compiled, describe_remaining
from kernelviz.ui.server.routes import events_path
from kernelviz.ui.shared import callbacks, session, view_filters
from kernelviz.ui.shared.text import plain

_HTML = """
<div class="live" role="status" aria-live="polite">
  <div class="head"><progress max="1" value="0" aria-label="cases done"></progress><span class="count"></span></div>
  <div class="note"></div>
  <div class="compiled"></div>
  <ul class="cases"></ul>
</div>
"""

_CSS = """
.live { font-family: var(--st-font); color: var(--st-text-color); font-size: 0.92rem; }
.head { display: flex; align-items: center; gap: 0.8rem; }
progress { flex: 1; height: 0.5rem; accent-color: var(--st-primary-color); min-width: 4rem; }
.count { white-space: nowrap; font-variant-numeric: tabular-nums; }
.compiled { opacity: 0.75; font-variant-numeric: tabular-nums; }
.compiled:empty { display: none; }
.note { opacity: 0.75; min-height: 1.2em; overflow-wrap: anywhere; }
ul { list-style: none; margin: 0.1rem 0 0; padding: 0; display: flex; flex-wrap: wrap; gap: 0.3rem 0.5rem; }
li { border: 1px solid var(--st-border-color); border-radius: 0.4rem; padding: 0.1rem 0.5rem;
     font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
li.compiling { border-style: dashed; }
li b { font-weight: 600; }
"""

# Text from events is set as textContent only. One EventSource lives as long as its run is shown, across reruns.
_JS = """
const shown = new WeakMap();
const REDRAW_MS = 800;
// No redraw for this long after a press: it would end the redraw that the press requested.
const QUIET_MS = 500;
let pressed = -QUIET_MS;
for (const kind of ["pointerdown", "pointerup", "keydown", "keyup"]) {
  document.addEventListener(kind, () => { pressed = performance.now(); }, { capture: true, passive: true });
}

function follow(root, data, setTriggerValue) {
  const bar = root.querySelector("progress"), count = root.querySelector(".count");
  const note = root.querySelector(".note"), list = root.querySelector(".cases");
  const compiled = root.querySelector(".compiled");
  const cases = new Map();
  let last = 0, timer = null, errors = 0;

  function enter(key, step, fraction) {
    const had = cases.get(key);
    if (had && had.step === step) { had.fraction = fraction; return; }
    const item = had ? had.item : list.appendChild(document.createElement("li"));
    item.className = step;
    cases.set(key, { item, step, fraction, since: performance.now() });
    tick();
  }
  function leave(key) {
    const had = cases.get(key);
    if (had) { had.item.remove(); cases.delete(key); }
  }
  function tick() {
    for (const [key, c] of cases) {
      const seconds = (performance.now() - c.since) / 1000;
      const name = document.createElement("b");
      name.textContent = c.step;
      c.item.replaceChildren(name, " " + key.replace(" | ", " \\u00b7 ") +
        (c.fraction ? " \\u00b7 " + Math.round(c.fraction * 100) + " %" : "") +
        (seconds >= 0.5 ? " \\u00b7 " + seconds.toFixed(1) + " s" : ""));
    }
  }
  function counts(m) {
    if (m.total) { bar.max = m.total; bar.value = m.done; } else { bar.removeAttribute("value"); }
    const failed = m.failed ? ", " + m.failed + " failed" : "";
    count.textContent = m.total ? m.done + " of " + m.total + " cases done" + failed + (m.left ? " \\u00b7 " + m.left : "") :
      m.done ? m.done + " done" + failed : m.status;
  }
  function redraw(at_once) {
    if (timer) { if (!at_once) return; clearTimeout(timer); timer = null; }
    const quiet = QUIET_MS - (performance.now() - pressed);
    const wait = Math.max(0, quiet, at_once ? 0 : REDRAW_MS - (performance.now() - last));
    timer = setTimeout(() => {
      timer = null;
      if (performance.now() - pressed < QUIET_MS) { redraw(at_once); return; }
      last = performance.now();
      setTriggerValue("redraw", Date.now());
    }, wait);
  }

  counts(data);
  if (data.message) note.textContent = data.message;
  compiled.textContent = data.compiled;
  for (const s of data.steps) enter(s.key, s.step, s.fraction);
  const clock = setInterval(tick, 100);
  const source = new EventSource(data.url);
  source.onopen = () => { errors = 0; };
  source.onmessage = (e) => {
    const m = JSON.parse(e.data);
    counts(m);
    if (m.kind === "step") { enter(m.case, m.step, m.fraction); note.textContent = ""; }
    if (m.kind === "done") {
      leave(m.case);
      note.textContent = m.case.replace(" | ", " \\u00b7 ") + ": " + m.words;
      redraw(false);
    }
    if (m.kind === "compiled") compiled.textContent = m.words;
    if (["queued", "busy", "starting", "roof", "check", "timeline"].includes(m.kind)) note.textContent = m.words;
    if (["check", "timeline", "queued"].includes(m.kind)) redraw(false);
    if (m.kind === "ended") { stop(); redraw(true); }
  };
  source.onerror = () => {
    errors += 1;
    if (source.readyState === EventSource.CLOSED || errors > 5) { stop(); setTriggerValue("lost", Date.now()); }
  };
  function stop() { source.close(); clearInterval(clock); }
  return { run: data.run, stop };
}

export default function (component) {
  const { data, parentElement, setTriggerValue } = component;
  const before = shown.get(parentElement);
  if (before && before.run === data.run) return before.stop;
  if (before) before.stop();
  const now = follow(parentElement, data, setTriggerValue);
  shown.set(parentElement, now);
  return now.stop;
}
"""

Activity = tuple[str, Progress]
"""The id of a calibration, a selftest or an inspection, and its progress."""

_LOOK_S = 0.03
"""While a redraw waits, it looks this often whether the next one is requested."""

_progress = st.components.v2.component("kernelviz_live", html=_HTML, css=_CSS, js=_JS)


def following(run_id: str, progress: Progress, key: str) -> None:
    """Draw the run's progress and keep it up to date; the page reruns when a case is done."""
    if st.session_state.get("polling"):
        _poll(run_id, key)
        return
    _progress(
        key=key,
        data={
            "run": run_id,
            "url": f"{events_path(run_id)}?after={progress.sequence}",
            "status": progress.status,
            "done": progress.done,
            "failed": progress.failed,
            "total": progress.total,
            "ahead": progress.ahead,
            "left": str(describe_remaining(progress.remaining_s)),
            "message": _message(progress),
            "compiled": "" if progress.compiled is None else str(describe_compiled(progress.compiled)),
            "steps": [
                {"key": case, "step": step.step, "fraction": step.fraction} for case, step in progress.steps.items()
            ],
        },
        on_redraw_change=lambda: None,
        on_lost_change=_start_polling,
    )


def _message(progress: Progress) -> str:
    """What the run waits for, or its position in the queue."""
    queued = progress.status == "queued" or progress.ahead > 0
    return progress.message or (str(describe_queue_position(RunQueued(ahead=progress.ahead))) if queued else "")


def running_activity(bench: Bench, name: str, progress: Progress, sentence: str, *, key: str, box: str) -> None:
    """A running activity: a sentence about it, its progress, and a button that cancels it. `box`: the key of the frame."""
    with st.container(border=True, key=box):
        st.caption(plain(sentence))
        following(name, progress, key=f"live_{key}")
        callbacks.button(
            "Cancel", partial(bench.cancel, name), key=f"cancel_{key}", about=name, icon=":material/stop_circle:"
        )


def activity_progress(
    bench: Bench, activity: Activity, sentence: str, *, what: str, cancelled: str, again: str, key: str, box: str
) -> None:
    """An activity: its progress while it runs, else how it ended if it did not finish.

    `what`: its name. `cancelled`: the sentence after a cancellation. `again`: the label of the button that repeats it."""
    name, progress = activity
    if progress.status in LIVING:
        running_activity(bench, name, progress, sentence, key=key, box=box)
    elif progress.status == "cancelled":
        st.warning(cancelled, icon=":material/pause_circle:")
    elif progress.status == "interrupted":
        reason = plain(progress.message).rstrip(".")
        st.error(f"The {what} failed: {reason}. Press **{again}** to try again.", icon=":material/error:")


def start_button(label: str, start: Callable[..., str], device: Device, *, kind: str, key: str, **look: Any) -> None:
    """A button that starts an activity on a device. `kind`: how the session names it. `look`: further arguments of st.button."""
    activities, owner = callbacks.actions().activities, session.owner()

    def act() -> None:
        activities[kind] = start(device.id, owner=owner)

    callbacks.button(label, act, key=key, about=device.id, **look)


def _activity(bench: Bench, name: str | None) -> Activity | None:
    progress = progress_of(bench, name)
    return (name, progress) if name and progress is not None else None


def activity_of_session(bench: Bench, kind: str) -> Activity | None:
    """The activity of that kind that this session started last, as long as it runs."""
    last = _activity(bench, callbacks.actions().activities.get(kind))
    return last if last is not None and last[1].status in LIVING else None


def activity_to_show(bench: Bench, param: str) -> Activity | None:
    """The activity that this session started last, until its end was shown; else the one that the address names as `param`.

    The address is made to name it, so that others can follow it."""
    last, ended_key = _activity(bench, callbacks.actions().activities.get(param)), f"told_{param}"
    if last is None or (last[1].status not in LIVING and st.session_state.get(ended_key) == last[0]):
        return _activity(bench, st.query_params.get(param))
    view_filters.keep(param, last[0], "")
    st.session_state[ended_key] = last[0]
    return last


def _start_polling() -> None:
    st.session_state["polling"] = True


def _poll(run_id: str, key: str) -> None:
    @st.fragment(run_every="1s", key=f"{key}_asking")
    def poll() -> None:
        progress = progress_of(session.bench(), run_id)
        if progress is None:  # The run was discarded, and the page has another run to show.
            st.rerun()
        steps = " · ".join(f"{s.step} {plain(c)}" for c, s in progress.steps.items()) or plain(_message(progress))
        share = progress.done / progress.total if progress.total else 0.0
        left = describe_remaining(progress.remaining_s)
        compiled = "" if progress.compiled is None else str(describe_compiled(progress.compiled))
        parts = (f"{progress.done} of {progress.total} cases done", str(left), compiled, steps)
        st.progress(min(share, 1.0), text=" · ".join(filter(None, parts)))
        newest = (run_id, progress.sequence)
        if newest != st.session_state.get("asked_sequence"):
            st.session_state["asked_sequence"] = newest
            st.rerun()

    poll()


def progress_of(bench: Bench, run_id: str | None) -> Progress | None:
    """The progress of a run or an activity; None without one, or if this server does not have it.

    Read it before the results: if the run ended in between, nothing would tell the page to draw the last results."""
    try:
        return bench.progress(run_id) if run_id else None
    except UnknownRun:
        return None


def wait_for_end(bench: Bench, name: str, most_s: float) -> None:
    """Wait until a run or an activity has ended, but not longer than `most_s`. The redraw ends here if the next is requested."""
    after, until_s = 0, time.monotonic() + most_s
    while time.monotonic() < until_s:
        for number, event in bench.follow(name, after, timeout_s=_LOOK_S):
            after = number
            if isinstance(event, RunEnded) or time.monotonic() > until_s:
                return
        callbacks.end_if_superseded()
