"""The selftest on the page Method: start it, follow it, read its results."""

import pandas as pd
import streamlit as st

from kernelviz.bench import Bench
from kernelviz.core import LIVING, Check, Device, Selftest
from kernelviz.core.selftest import CheckUnit
from kernelviz.formats import shipped_runs
from kernelviz.text import format_limit
from kernelviz.text.selftest import amount
from kernelviz.ui.shared import live_progress
from kernelviz.ui.shared.live_progress import Activity
from kernelviz.ui.shared.text import markdown_table, plain, when

PARAM = "selftest"
"""The parameter of the address that names the selftest to follow."""
_OUTCOMES = {
    True: ("✓\u00a0passed", "green"),
    False: ("✕\u00a0failed", "red"),
    None: ("–\u00a0not possible here", "gray"),
}
_UNITS: dict[str, CheckUnit] = {"_bytes_per_s": "bytes_per_s", "_s": "s", "_fraction": "fraction", "_hz": "hz"}
"""The unit of a value by the end of its name, longer ends first."""


def selftest_section(bench: Bench, device: Device, last: Selftest | None, activity: Activity | None) -> None:
    """A button, the running selftest, and the results of the last one.

    `activity`: the selftest of the address or of this session, read before `last`."""
    running = activity is not None and activity[1].status in LIVING
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="selftest_head"):
        st.markdown("##### Selftest", width="content")
        live_progress.start_button(
            "Run the selftest", bench.selftest, device, kind=PARAM, key="run_selftest", icon=":material/fact_check:",
            disabled=running or not device.usable,
            help="Measures kernels of known duration, kernels that are slowed down on purpose and kernels that cheat on purpose, "
            "and compares the times with other timers. In a terminal: kernelviz selftest",
        )  # fmt: skip
    st.markdown("The selftest checks the statements of this page on this machine.")
    if not device.usable:
        st.caption(plain(f"{device.name} cannot be tested: {device.reason}"))
    if activity is not None:
        live_progress.activity_progress(
            bench, activity, f"Running the selftest on {device.name}: {activity[1].done} checks done.", what="selftest",
            cancelled="The selftest was cancelled, and its results were not stored.", again="Run the selftest",
            key="selftest", box="selftest_going",
        )  # fmt: skip
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
        for selftest in shipped_runs.selftests():
            title = (
                f"Results from another machine, {plain(selftest.environment.device.name)}: {format_summary(selftest)}"
            )
            with st.expander(title, key=f"shipped_{selftest.id}", icon=":material/inventory_2:"):
                results(selftest, key=f"{selftest.id}_", nested=True)


def results(selftest: Selftest, key: str = "", *, nested: bool = False) -> None:
    """How many checks passed, a line for each check, and all values. `key` separates several selftests on one page."""
    at = selftest.environment
    software = [f"kernelviz {at.kernelviz}", f"Python {at.python}", *(f"{n} {v}" for n, v in at.versions.items())]
    driver = f" · driver {at.device.driver}" if at.device.driver else ""
    environment = plain(f"{at.device.name} · {when(selftest.created_at)}{driver} · {' · '.join(software)}")
    st.markdown(f"{format_summary(selftest)}  \n:small[:gray[{environment}]]")
    checks = sorted(selftest.checks, key=lambda check: [False, True, None].index(check.passed))  # failed ones first
    with st.container(key=f"{key}checks"):
        st.markdown(markdown_table(("result", "check", "measured", "allowed"), map(_cells, checks)))
    rows = [
        {"check": plain(c.name), "value of": name.replace("_", " "), "value": _format_value(name, value)}
        for c in selftest.checks
        for name, value in c.figures.items()
    ]
    if rows:
        # Streamlit does not allow an expander inside an expander.
        with (
            st.container()
            if nested
            else st.expander("All values", key="selftest_figures", icon=":material/table_rows:")
        ):
            st.dataframe(
                pd.DataFrame(rows), hide_index=True, key=f"{key}check_figures", alt="Every value of every check"
            )


def format_summary(selftest: Selftest) -> str:
    """How many checks passed, failed, or are not possible on the machine.

    >>> from kernelviz.core.run import Environment
    >>> checks = tuple(Check(name=n, question="?", passed=p) for n, p in (("a", True), ("b", False), ("c", None)))
    >>> device = Device(id="cpu", kind="cpu", name="x", uuid="x")
    >>> where = Environment(device=device, host="h", platform="p", python="3", kernelviz="1")
    >>> format_summary(Selftest(id="s", created_at="", environment=where, checks=checks))
    '**:red[✕ 1 failed]**, 1 passed, 1 not possible here'
    """
    failed, passed, impossible = (sum(c.passed is outcome for c in selftest.checks) for outcome in (False, True, None))
    parts = (
        [f"**:red[✕ {failed} failed]**", f"{passed} passed"]
        if failed
        else [f"**:green[✓ {passed} passed]**", "none failed"]
    )
    return ", ".join([*parts, *([f"{impossible} not possible here"] if impossible else [])])


def _cells(check: Check) -> tuple[str, ...]:
    """The row of a check in the table of the results."""
    outcome, colour = _OUTCOMES[check.passed]
    message = plain(check.message)
    remark = f" **{message}**" if check.passed is False else f" :gray[{message}]"
    measured = amount(check.value, check.unit) if check.value is not None else ""
    return (
        f":{colour}[{outcome}]",
        f"**{plain(check.name)}** · {plain(check.question)}{remark if message else ''}",
        *(plain(text).replace(" ", "\u00a0") for text in (measured, format_limit(check))),
    )


def _format_value(name: str, value: float) -> str:
    """A value with the unit in which its name ends.

    >>> _format_value("cold_s", 2e-6), _format_value("copies", 20.0)
    ('2.000 µs', '20')
    """
    return str(amount(value, next((unit for end, unit in _UNITS.items() if name.endswith(end)), None)))
