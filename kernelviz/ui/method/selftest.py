"""The selftest on the page Method: start it, follow it, read its results."""

import pandas as pd
import streamlit as st

from kernelviz.bench import Bench, Progress
from kernelviz.core import LIVING, Check, Device, Selftest
from kernelviz.core.selftest import CheckUnit
from kernelviz.formats import shipped_runs
from kernelviz.text.selftest import amount, format_limit
from kernelviz.ui.shared import live_progress
from kernelviz.ui.shared.live_progress import Activity
from kernelviz.ui.shared.text import plain, when

_PARAM = "selftest"
_OUTCOMES = {
    True: ("✓\u00a0passed", "green"),
    False: ("✕\u00a0failed", "red"),
    None: ("–\u00a0not possible here", "gray"),
}
_UNITS: dict[str, CheckUnit] = {"_s": "s", "_fraction": "fraction", "_bytes_per_s": "bytes_per_s", "_hz": "hz"}


def followed_selftest(bench: Bench) -> Activity | None:
    """The selftest of the address or of this session, with its progress; None without one."""
    return live_progress.activity_to_show(bench, _PARAM)


def selftest_section(bench: Bench, device: Device, last: Selftest | None, activity: Activity | None) -> None:
    """A button, the running selftest, and the results of the last one.

    `activity`: what `followed_selftest` returned before `last` was read."""
    running = activity is not None and activity[1].status in LIVING
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="selftest_head"):
        st.markdown("##### Selftest", width="content")
        live_progress.start_button(
            "Run the selftest", bench.selftest, device, kind=_PARAM, key="run_selftest", icon=":material/fact_check:",
            disabled=running or not device.usable,
            help="Measures kernels of known duration, deliberate slow-downs and deliberate cheats, and compares with other "
            "timers. In a terminal: kernelviz selftest",
        )  # fmt: skip
    st.markdown("The selftest checks the statements of this page on this machine.")
    if not device.usable:
        st.caption(plain(f"{device.name} cannot be tested: {device.reason}"))
    if activity is not None:
        _progress(bench, *activity, device)
    partial = bench.selftest_result(activity[0]) if activity is not None and running else None
    if partial is not None and partial.checks:
        st.markdown("**Results so far**")
        results(partial)
    elif last is not None:
        results(last)
    elif not running:
        st.info(
            f"The selftest did not run on {plain(device.name)} yet. Press **Run the selftest**: it takes a few minutes, during "
            "which other measurements wait.",
            icon=":material/fact_check:",
        )
        _results_of_other_machines()


def _results_of_other_machines() -> None:
    """The selftests that came with the package, for a machine without one."""
    for selftest in shipped_runs.selftests():
        title = f"Results from another machine, {plain(selftest.environment.device.name)}: {format_summary(selftest)}"
        with st.expander(title, key=f"shipped_{selftest.id}", icon=":material/inventory_2:"):
            results(selftest, key=f"{selftest.id}_", nested=True)


def _progress(bench: Bench, name: str, progress: Progress, device: Device) -> None:
    """The running selftest, or how it ended if it did not finish."""
    if progress.status in LIVING:
        sentence = f"Running the selftest on {device.name}: {progress.done} checks done."
        live_progress.running_activity(bench, name, progress, sentence, key="selftest", box="selftest_going")
    elif progress.status == "cancelled":
        st.warning("The selftest was cancelled, and its results were not stored.", icon=":material/pause_circle:")
    elif progress.status == "interrupted":
        st.error(
            f"The selftest failed: {plain(progress.message).rstrip('.')}. Press **Run the selftest** to try again.",
            icon=":material/error:",
        )


def results(selftest: Selftest, key: str = "", *, nested: bool = False) -> None:
    """How many checks passed, a line for each check, and all values. `key` separates several selftests on one page."""
    st.markdown(f"{format_summary(selftest)}  \n:small[:gray[{plain(_environment(selftest))}]]")
    lines = ["| result | check | measured | allowed |", "|---|---|---|---|"]
    lines += [_line(check) for check in sorted(selftest.checks, key=_failed_first)]
    with st.container(key=f"{key}checks"):
        st.markdown("\n".join(lines))
    rows = [
        {"check": _name(c), "value of": name.replace("_", " "), "value": _format_value(name, value)}
        for c in selftest.checks
        for name, value in c.figures.items()
    ]
    if not rows:
        return
    # Streamlit does not allow an expander inside an expander.
    place = (
        st.container() if nested else st.expander("All values", key="selftest_figures", icon=":material/table_rows:")
    )
    frame = pd.DataFrame(rows)
    place.dataframe(frame, hide_index=True, key=f"{key}check_figures", alt="Every value of every check")


def format_summary(selftest: Selftest) -> str:
    """How many checks passed, failed, or are not possible on the machine.

    >>> from kernelviz.core.run import Environment
    >>> checks = tuple(Check(name=n, question="?", passed=p) for n, p in (("a", True), ("b", False), ("c", None)))
    >>> device = Device(id="cpu", kind="cpu", name="x", uuid="x")
    >>> where = Environment(device=device, host="h", platform="p", python="3", kernelviz="1")
    >>> format_summary(Selftest(id="s", created_at="", environment=where, checks=checks))
    '**:red[✕ 1 failed]**, 1 passed, 1 not possible here'
    """
    counts = {outcome: sum(c.passed is outcome for c in selftest.checks) for outcome in _OUTCOMES}
    parts = [f"**:red[✕ {counts[False]} failed]**"] if counts[False] else []
    parts.append(f"{counts[True]} passed" if counts[False] else f"**:green[✓ {counts[True]} passed]**")
    if not counts[False]:
        parts.append("none failed")
    if counts[None]:
        parts.append(f"{counts[None]} not possible here")
    return ", ".join(parts)


def _environment(selftest: Selftest) -> str:
    at = selftest.environment
    software = [f"kernelviz {at.kernelviz}", f"Python {at.python}", *(f"{n} {v}" for n, v in at.versions.items())]
    if at.device.driver:
        software.insert(0, f"driver {at.device.driver}")
    return f"{at.device.name} · {when(selftest.created_at)} · {' · '.join(software)}"


def _failed_first(check: Check) -> int:
    return [False, True, None].index(check.passed)


def _line(check: Check) -> str:
    outcome, colour = _OUTCOMES[check.passed]
    message = plain(check.message)
    remark = f" **{message}**" if check.passed is False else f" :gray[{message}]"
    measured = amount(check.value, check.unit) if check.value is not None else ""
    cells = (
        f":{colour}[{outcome}]",
        f"**{_name(check)}** · {plain(check.question)}{remark if message else ''}",
        _unbroken(plain(measured)),
        _unbroken(plain(format_limit(check))),
    )
    return f"| {' | '.join(cells)} |"


def _unbroken(text: str) -> str:
    return text.replace(" ", "\u00a0")


def _name(check: Check) -> str:
    return plain(check.name)  # as `kernelviz selftest --only` takes it


def _format_value(name: str, value: float) -> str:
    """A value with the unit in which its name ends.

    >>> _format_value("cold_s", 2e-6), _format_value("copies", 20.0)
    ('2.000 µs', '20')
    """
    longest = sorted(_UNITS, key=len, reverse=True)
    return str(amount(value, next((_UNITS[end] for end in longest if name.endswith(end)), None)))
