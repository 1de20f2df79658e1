"""The instrument's own test on the page Method: start it, follow it, read what it found."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from kernelviz.bench import Bench, Progress
from kernelviz.core.run import LIVING, Device
from kernelviz.core.selftest import Check, CheckUnit, Selftest
from kernelviz.formats import shipped_runs
from kernelviz.text.selftest import amount, limit_words
from kernelviz.ui.shared import live_progress
from kernelviz.ui.shared.text import plain, when

_PARAM = "selftest"
_OUTCOMES = {
    True: ("✓\u00a0passed", "green"),
    False: ("✕\u00a0failed", "red"),
    None: ("–\u00a0not possible here", "gray"),
}
_UNITS: dict[str, CheckUnit] = {"_s": "s", "_fraction": "fraction", "_bytes_per_s": "bytes_per_s", "_hz": "hz"}


def asked_for(bench: Bench) -> tuple[str, Progress] | None:
    """The selftest of the address or of this session, and where it stands; None where there is none."""
    return live_progress.asked_for(bench, _PARAM)


def section(bench: Bench, device: Device, last: Selftest | None, asked: tuple[str, Progress] | None) -> None:
    """The whole section: a button, the one that goes on, and the last one. `asked`: what `asked_for` returned before the
    last one was read."""
    going = asked is not None and asked[1].status in LIVING
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="selftest_head"):
        st.markdown("##### Selftest", width="content")
        live_progress.button(
            "Run the selftest", bench.selftest, device, job=_PARAM, key="run_selftest", icon=":material/fact_check:",
            disabled=going or not device.usable,
            help="Known work, planted slow-downs, planted cheats, other timers. Also: kernelviz selftest",
        )  # fmt: skip
    st.markdown("What this page claims, put to the test on this machine.")
    if not device.usable:
        st.caption(plain(f"{device.name} cannot be used: {device.reason}"))
    if asked is not None:
        _asked(bench, *asked, device)
    made = bench.selftest_made(asked[0]) if asked is not None and going else None
    if made is not None and made.checks:
        st.markdown("**So far**")
        results(made)
    elif last is not None:
        results(last)
    elif not going:
        st.info(
            f"The instrument was not tested on {plain(device.name)} yet. **Run the selftest** takes some minutes, and nothing "
            "else is measured meanwhile.",
            icon=":material/fact_check:",
        )
        _shipped()


def _shipped() -> None:
    """What was found elsewhere, for a machine that has found nothing yet."""
    for made in shipped_runs.selftests():
        title = f"Found elsewhere, on {plain(made.environment.device.name)}: {summary_words(made)}"
        with st.expander(title, key=f"shipped_{made.id}", icon=":material/inventory_2:"):
            results(made, key=f"{made.id}_", nested=True)


def _asked(bench: Bench, name: str, progress: Progress, device: Device) -> None:
    """The selftest that was started from this address: where it stands, or how it ended when it did not come to its end."""
    if progress.status in LIVING:
        words = f"Testing the instrument on {device.name}: {progress.done} checks done."
        live_progress.job(bench, name, progress, words, key="selftest", box="selftest_going")
    elif progress.status == "cancelled":
        st.warning("The selftest was cancelled; it is not kept.", icon=":material/pause_circle:")
    elif progress.status == "interrupted":
        st.error(f"The selftest broke off: {plain(progress.message)}", icon=":material/error:")


def results(made: Selftest, key: str = "", *, nested: bool = False) -> None:
    """Its verdict in one line, a line a check, and all figures behind them. `key` tells several on one page apart."""
    st.markdown(f"{summary_words(made)}  \n:small[:gray[{plain(_where(made))}]]")
    lines = ["| result | check | found | allowed |", "|---|---|---|---|"]
    lines += [_line(check) for check in sorted(made.checks, key=_failed_first)]
    with st.container(key=f"{key}checks"):
        st.markdown("\n".join(lines))
    rows = [
        {"check": _name(c), "figure": figure.replace("_", " "), "value": _figure(figure, value)}
        for c in made.checks
        for figure, value in c.figures.items()
    ]
    if not rows:
        return
    # An expander cannot hold another one.
    place = (
        st.container() if nested else st.expander("All figures", key="selftest_figures", icon=":material/table_rows:")
    )
    frame = pd.DataFrame(rows)
    place.dataframe(frame, hide_index=True, key=f"{key}check_figures", alt="Every figure of every check")


def summary_words(made: Selftest) -> str:
    """How many checks passed, failed, could not be made.

    >>> from kernelviz.core.run import Environment
    >>> checks = tuple(Check(name=n, question="?", passed=p) for n, p in (("a", True), ("b", False), ("c", None)))
    >>> device = Device(id="cpu", kind="cpu", name="x", uuid="x")
    >>> where = Environment(device=device, host="h", platform="p", python="3", kernelviz="1")
    >>> summary_words(Selftest(id="s", created_at="", environment=where, checks=checks))
    '**:red[✕ 1 failed]**, 1 passed, 1 not possible here'
    """
    counts = {outcome: sum(c.passed is outcome for c in made.checks) for outcome in _OUTCOMES}
    parts = [f"**:red[✕ {counts[False]} failed]**"] if counts[False] else []
    parts.append(f"{counts[True]} passed" if counts[False] else f"**:green[✓ {counts[True]} passed]**")
    if not counts[False]:
        parts.append("none failed")
    if counts[None]:
        parts.append(f"{counts[None]} not possible here")
    return ", ".join(parts)


def _where(made: Selftest) -> str:
    at = made.environment
    software = [f"kernelviz {at.kernelviz}", f"Python {at.python}", *(f"{n} {v}" for n, v in at.versions.items())]
    if at.device.driver:
        software.insert(0, f"driver {at.device.driver}")
    return f"{at.device.name} · {when(made.created_at)} · {' · '.join(software)}"


def _failed_first(check: Check) -> int:
    return [False, True, None].index(check.passed)


def _line(check: Check) -> str:
    word, colour = _OUTCOMES[check.passed]
    message = plain(check.message)
    said = f" **{message}**" if check.passed is False else f" :gray[{message}]"
    found = amount(check.value, check.unit) if check.value is not None else ""
    cells = (
        f":{colour}[{word}]",
        f"**{_name(check)}** · {plain(check.question)}{said if message else ''}",
        _unbroken(plain(found)),
        _unbroken(plain(limit_words(check))),
    )
    return f"| {' | '.join(cells)} |"


def _unbroken(text: str) -> str:
    return text.replace(" ", "\u00a0")


def _name(check: Check) -> str:
    return plain(check.name)  # as `kernelviz selftest --only` takes it


def _figure(name: str, value: float) -> str:
    """A figure for people, by the unit that its name ends with.

    >>> _figure("cold_s", 2e-6), _figure("copies", 20.0)
    ('2.000 µs', '20')
    """
    longest = sorted(_UNITS, key=len, reverse=True)
    return amount(value, next((_UNITS[end] for end in longest if name.endswith(end)), None))
