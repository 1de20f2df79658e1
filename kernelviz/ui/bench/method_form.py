"""The part of the sidebar form that says how times are measured, and on what data."""

from collections.abc import Callable
from typing import Any

import streamlit as st

from kernelviz.bench import Bench
from kernelviz.bench.planning import LOAD_S
from kernelviz.ops import Op
from kernelviz.text import format_variant
from kernelviz.ui.bench.form import BUDGET_S, CLOCKS, Form, data_kinds
from kernelviz.ui.shared.view_filters import widget_with_value

_DATA_HELP = (
    "What the timed inputs hold. outliers: normal, with one of 1,009 numbers 32 times larger. The power of a GPU depends on the "
    "bits that change, so zeros run faster than normal data. Outputs are checked with these data and with normal data."
)


def input_data(selectbox: Callable[..., Any], op: Op) -> None:
    """The choice of the input data."""
    widget_with_value(
        selectbox, "Input data", data_kinds(op), key="data", format_func=lambda n: n.replace("_", " "), help=_DATA_HELP
    )


def draw(bench: Bench, form: Form) -> None:
    """The box Method of the form."""
    with st.expander("Method", key="method_expander"):
        st.number_input(
            "Time limit per case, s", *BUDGET_S, step=0.25, key="budget",
            help="The cold time of a case is measured for about this long, or shorter if its 95 % interval is narrow enough; "
            "other times have their own limits. If a time is not stable, as on a busy machine, it is measured up to three times.",
        )  # fmt: skip
        widget_with_value(
            st.segmented_control, "Load", CLOCKS, key="clock",
            help="burst: short bursts of load, so that the clock stays high. sustained: back-to-back calls after some seconds of "
            "the same load, as in a long job. Times of the two are never compared with each other.",
        )  # fmt: skip
        if form.clock == "sustained":
            st.number_input(
                "Load before each time, s", *LOAD_S, step=1.0, key="load",
                help="How long a variant runs without pauses before it is measured, in each of three passes. The power cap "
                "applies after 0.1 s; the temperature, and with it the power, follows more slowly.",
            )  # fmt: skip
        if bench.device(form.device).kind == "cuda":
            st.toggle(
                "Measure energy per call", key="energy",
                help="Reads the energy counter of the board over two seconds. Adds about three seconds per case.",
            )  # fmt: skip
            st.toggle(
                "Compile ahead", key="compile_ahead",
                help="Compiles Triton and CUDA kernels in several processes, which stop while a time is taken. Otherwise, the "
                "measuring process compiles them one after the other.",
            )  # fmt: skip
        st.toggle(
            "Time naively, too", key="naive",
            help="Also times the first calls of a new process by one pair of CUDA events (on a CPU: the host clock), without "
            "warm-up, as published numbers often are. Adds about five seconds per case. The tab Figures shows them beside ours.",
        )  # fmt: skip
        st.toggle(
            "Do not trust the variants",
            key="untrusted",
            help="For code of somebody else: each variant is measured in a process of its own, and a judge process, which runs "
            "none of them, checks outputs and times. Only cold times are measured. This takes about ten seconds per case. It is "
            "no sandbox: the code runs with your rights.",
        )
        if form.variants:
            widget_with_value(
                st.selectbox,
                "Baseline",
                form.variants,
                key="baseline",
                format_func=format_variant,
                help="Speed-ups are relative to this variant: its time divided by the time of the other variant.",
            )
        op = bench.ops()[form.op]
        if op.computes.get(form.dtype):
            input_data(st.selectbox, op)
        devices = {d.id: d for d in bench.devices()}
        widget_with_value(
            st.selectbox, "Device", list(devices), key="device", format_func=lambda n: f"{n} · {devices[n].name}"
        )
