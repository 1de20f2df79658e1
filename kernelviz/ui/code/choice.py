"""The boxes of the page Code: run, variant, problem and kernel of one or two cases, and the text that is shown.

The address always names what the page shows, because the defaults depend on the runs of this machine.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeVar

import streamlit as st

from kernelviz.bench import Bench, RunSummary
from kernelviz.bench.code_listings import KINDS, NORMALISED_KINDS, counterpart
from kernelviz.bench.compared_code import CodeSide
from kernelviz.core import LIVING, Problem, Result, Run, UnknownRun
from kernelviz.core.code_listing import ListingKind
from kernelviz.core.errors import nearest
from kernelviz.text import format_sizes, format_variant
from kernelviz.text.code_listings import KIND_MEANINGS, KIND_NAMES
from kernelviz.ui.shared import address_messages, missing_run, run_in_hand, site, view_filters
from kernelviz.ui.shared.text import bullets, distinct_labels, plain, run_label

_Option = TypeVar("_Option", bound=str)
Selected = ListingKind | Literal["all"]
"""What is shown: one kind of text, beside the source, or source, PTX and SASS together."""
FIRST_RUN: Final = "h200-linear_gelu-code"
"""What a first visit shows: the run of the package that came with its code."""
_MOST_LISTED = 12
_READ_WHEN_ENDED: Final[frozenset[ListingKind]] = frozenset({"sass", "main-loop"})


@dataclass(frozen=True, slots=True)
class Side:
    """A case, and one of its kernels; None if no code was captured for it."""

    summary: RunSummary
    run: Run
    result: Result
    kernel: str | None

    @property
    def problem(self) -> Problem:
        return self.result.problem

    @property
    def variant(self) -> str:
        return self.result.variant

    @property
    def case(self) -> CodeSide:
        """The side, as the use cases name it."""
        return CodeSide(self.run, self.variant, self.problem.key, self.kernel)

    @property
    def going_on(self) -> bool:
        """Whether the run is still measured, so that no tool should use the processor."""
        return self.run.status in LIVING

    @property
    def kinds(self) -> tuple[ListingKind, ...]:
        """The kinds of text that its kernel has. SASS is read when the run has ended, because that would disturb the times."""
        artifacts = {a.kind for code in self.result.code or () if code.kernel == self.kernel for a in code.artifacts}
        present = artifacts | ({"sass", "main-loop"} if "cubin" in artifacts and not self.going_on else set())
        return tuple(kind for kind in KINDS if kind in present)


def side(bench: Bench) -> Side | None:
    """The case that the page is about; None if no run can be shown."""
    with_code = bench.history.code.runs_with_code()
    runs = _runs(bench, with_code, st.query_params.get("run"))
    _say_unknown(bench, "run", runs)
    in_hand = run_in_hand.current(bench)
    first = next((run_id for run_id in (in_hand, FIRST_RUN) if run_id in with_code and run_id in runs), None)
    default = first or next(iter(runs), None)
    if default is None:
        return None
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom", key="code_side_a"):
        run_id = _box("Run", list(runs), default, "run", 330, distinct_labels(runs, lambda r: run_label(runs[r])))
        chosen = _case(bench, runs[run_id], "")
    run_in_hand.keep_selection("code", [run_id])
    return chosen


def other_side(bench: Bench, first: Side) -> Side | None:
    """The case that the first one is compared with; None if the page shows one case."""
    params = ("run_b", "variant_b", "problem_b")
    named = any(st.query_params.get(param) for param in params)
    if "code_compare" not in st.session_state or any(map(view_filters.moved, params)):
        st.session_state["code_compare"] = named
    on = st.toggle(
        "Compare with another variant, size or run", key="code_compare",
        help="Shows how source, PTX, SASS and main loop of two kernels differ, beside the measured difference.",
    )  # fmt: skip
    if not on:
        for param in (*params, "kernel_b"):
            view_filters.write(param, None)
        return None
    with_code = bench.history.code.runs_with_code()
    runs = _runs(bench, with_code, st.query_params.get("run_b")) | {first.summary.id: first.summary}
    _say_unknown(bench, "run_b", runs)
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom", key="code_side_b"):
        run_id = _box(
            "Run B", list(runs), first.summary.id, "run_b", 330, distinct_labels(runs, lambda r: run_label(runs[r]))
        )
        return _case(bench, runs[run_id], "_b", first)


def kind_of_one(side: Side) -> Selected:
    """What is shown of one kernel."""
    kinds: list[Selected] = list(side.kinds)
    if {"source", "ptx", "sass"} <= set(kinds):
        kinds.append("all")
    return _kind_box(kinds)


def compared_kind(first: Side, second: Side) -> ListingKind:
    """The kind of text that is compared. Both sides need to have one in common."""
    return _kind_box([kind for kind in first.kinds if kind in second.kinds])


def _kind_box(kinds: Sequence[_Option]) -> _Option:
    likely: Sequence[str] = ("sass", "ptx", *KINDS)
    default = min(kinds, key=lambda kind: likely.index(kind) if kind in likely else len(likely))
    meanings = (f"{KIND_NAMES[kind]}: {KIND_MEANINGS[kind]}" for kind in KINDS if kind in kinds)
    return _box("Text", kinds, default, "kind", 0, _name_of_kind, widget=st.segmented_control, help=bullets(meanings))


def _name_of_kind(kind: str) -> str:
    return next((name for known, name in KIND_NAMES.items() if known == kind), "Source, PTX and SASS")


def control_codes(kind: Selected) -> bool:
    """Whether the control codes are shown beside SASS."""
    if kind not in ("sass", "main-loop", "all"):
        return False
    chosen = view_filters.choose(
        st.segmented_control, "Control codes", ["hidden", "shown"], "hidden", key="control",
        help="The scheduling information that the compiler writes into each instruction: cycles to stall, yield, and barriers.",
    )  # fmt: skip
    return chosen == "shown"


def normalise(kind: Selected) -> bool:
    """Whether a difference leaves out what differs between any two compilations."""
    if kind not in NORMALISED_KINDS:
        return False
    chosen = view_filters.choose(
        st.segmented_control, "Compared text", ["normalised", "as compiled"], "normalised", key="compared",
        help="Registers and addresses differ between any two compilations. Normalised, registers are numbered anew within each "
        "instruction, and addresses, labels, line directives and locations are left out.",
    )  # fmt: skip
    return chosen == "normalised"


def _runs(bench: Bench, with_code: frozenset[str], wanted: str | None) -> dict[str, RunSummary]:
    """The runs to choose from: the newest here and those of the package that have code, and the one of the address."""
    offered = [run for run in (*bench.runs(), *bench.history.shipped()) if run.id in with_code]
    runs = {run.id: run for run in offered}
    for run_id in (wanted, run_in_hand.current(bench)):
        if run_id is not None and run_id not in runs:
            try:
                runs[run_id] = bench.history.openable(run_id)
            except UnknownRun:
                continue
    return runs


def _say_unknown(bench: Bench, param: str, runs: dict[str, RunSummary]) -> None:
    """A run of the address that is not here, and which runs have code."""
    wanted = st.query_params.get(param)
    if not wanted or wanted in runs:
        return
    missing_run.say(wanted, options=" --with-code")
    with st.container(border=True, key="code_runs"):
        st.markdown("**Runs with code**")
        with st.container(horizontal=True, gap="small"):
            for run in list(runs.values())[:_MOST_LISTED]:
                st.page_link(
                    site.page("code"), label=plain(run_label(run)), query_params={"run": run.id}, icon=":material/code:"
                )


def _case(bench: Bench, summary: RunSummary, suffix: str, first: Side | None = None) -> Side | None:
    """Variant, problem and kernel of a run. `first`: the other side, whose problem is proposed, and another variant."""
    run = bench.load(summary.id)
    results = {(r.variant, r.problem.key): r for r in run.results}
    variants = [v for v in run.plan.variants if any(r.variant == v for r in run.results)]
    if not variants:
        return None
    coded = [v for v in variants if any(r.code for r in run.results if r.variant == v)]
    own = [v for v in coded if any(_is_own(r) for r in run.results if r.variant == v)]
    ordered = list(dict.fromkeys([*own, *coded, *variants]))
    likely = [v for v in ordered if first is None or (run.id, v) != (first.run.id, first.variant)] or ordered
    variant = _box(
        f"Variant{_name(suffix)}", ordered, likely[0], f"variant{suffix}", 230,
        lambda v: str(format_variant(v)) if v in coded else f"{format_variant(v)} (no code)",
    )  # fmt: skip
    problems = {r.problem.key: r.problem for r in run.results if r.variant == variant}
    with_code = [key for key in problems if results[variant, key].code] or list(problems)
    default = first.problem.key if first is not None and first.problem.key in problems else with_code[-1]
    problem = _box(
        f"Sizes{_name(suffix)}", list(problems), default, f"problem{suffix}", 260,
        lambda key: f"{format_sizes(problems[key])} · {problems[key].precision}",
    )  # fmt: skip
    result = results[variant, problem]
    kernels = list(dict.fromkeys(code.kernel for code in result.code or ()))
    if not kernels:
        view_filters.write(f"kernel{suffix}", None)
        return Side(summary, run, result, None)
    likely_kernel = counterpart(kernels, first.kernel) if first is not None and first.kernel is not None else None
    kernel = kernels[0]
    if len(kernels) > 1:
        kernel = _box(f"Kernel{_name(suffix)}", kernels, likely_kernel or kernels[0], f"kernel{suffix}", 260, str)
    else:
        view_filters.write(f"kernel{suffix}", kernel if suffix == "" else None)
    return Side(summary, run, result, kernel)


def _is_own(result: Result) -> bool:
    """Whether its source is what a person wrote, which line tables name, and not a module that torch.compile generated."""
    codes = result.code or ()
    return any(a.kind == "source" for code in codes for a in code.artifacts) and all(
        code.compiler != "inductor" for code in codes
    )


def _name(suffix: str) -> str:
    return " B" if suffix else ""


def _box(
    label: str,
    options: Sequence[_Option],
    default: _Option,
    param: str,
    width: int,
    format_func: Callable[[str], Any],
    *,
    widget: Callable[..., Any] = st.selectbox,
    **look: Any,
) -> _Option:
    """A box whose value the address names under `param`. An unknown value of the address is reported, and the nearest is used."""
    key = f"code_{param}"
    wanted = st.query_params.get(param)
    if view_filters.moved(param) or st.session_state.get(key) not in options:
        used: str = default
        address_messages.remove(key)
        if wanted and wanted not in options and param not in ("run", "run_b"):
            used = nearest(wanted, options) or default
            address_messages.store(key, f"In the address, {param} {wanted!r} is not there", used)
        st.session_state[key] = wanted if wanted in options else used
    size = {"width": width} if width else {}
    value: _Option = (
        view_filters.widget_with_value(
            widget, label, options, key=key, format_func=lambda v: str(format_func(v)), **size, **look
        )
        or default
    )
    address_messages.draw(key)
    view_filters.write(param, value)
    return value
