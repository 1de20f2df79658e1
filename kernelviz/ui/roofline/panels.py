"""The panels of the page Roofline. `pages/roofline.py` puts them in reading order."""

from collections import Counter
from collections.abc import Sequence

import streamlit as st

from kernelviz import plots
from kernelviz.bench import RunSummary
from kernelviz.bench.roofline import Placement, RoofSource
from kernelviz.core import DataSheetRoof, Device, Level, units
from kernelviz.hardware.datasheet import ceilings, ceilings_by_device
from kernelviz.metrics.placement import Placed
from kernelviz.plots.roofline_of_runs import MOST_NAMED, lines_of
from kernelviz.tables.column import View
from kernelviz.tables.roofline import placed_columns
from kernelviz.text import (
    describe_ceiling,
    describe_distance,
    describe_evidence,
    describe_missing,
    describe_quality,
    format_badge,
    format_limiter,
    format_rates,
    format_time,
    format_variant,
)
from kernelviz.text.above_roof import count_above_roofs, describe_above_roof, describe_above_roofs
from kernelviz.text.counters import describe_counting, describe_traffic
from kernelviz.text.limiter import WITHOUT_ROOFS, describe_meaning, lacks_roofs
from kernelviz.text.roofs import describe_above_sheet
from kernelviz.ui.roofline import choice
from kernelviz.ui.shared import charts, profiler_commands, site, table
from kernelviz.ui.shared.text import bullets, plain

_MOST_NAMED = 6
"""Of the variants of a limiter."""
SMALL_TABLE_PX = 240
"""Height of the table while one case is described above it."""


_RULE = """
The limiter is derived from times, launch facts and, for cases that have them, hardware counters. The first rule that applies
determines it:

1. **launch**: empty kernels of the same number take 40 % of the time or more.
2. **L2** (warm times): the case is faster than DRAM bandwidth allows, or reaches 60 % of the L2 bandwidth or more.
3. **compute**, **bandwidth**: the case reaches 60 % of that roof or more. Nsight Compute uses 60 % too.
   By counters, the measured traffic or a pipe's cycles count, too; **issue** means that the schedulers, or loads and stores,
   are busy in 60 % of their cycles or more.
4. **bandwidth**, for a call of several kernels, left of the ridge: each kernel takes as long as a few passes over the bytes of
   the problem.
5. **latency**: a grid that leaves a quarter of the multiprocessors or more without work, or a kernel too short to fill the GPU.
   Left of the ridge also at most 25 % of
   the warps that the GPU can hold, or so few threads that one 16-byte vector in flight per thread cannot reach 60 % of the
   bandwidth. Right of it, tensor cores are busy at such an occupancy, so it is no reason.
6. **bandwidth**, for an op that only moves data: threads wait longer for their bytes than trips to memory take.
7. **compute**, **bandwidth**: the case reaches half of that roof or more.
8. **latency**, by counters: no unit is busy enough, so the warps wait.
9. **unclear**: no rule applies. Unknown; profile with `ncu`. The case's box has the commands.

Nothing is known of a CPU's kernels. Its cases are **launch** limited up to 2.5 times one torch call, else rules 3 and 7 apply.
"""


def title() -> None:
    """Title, and how to read the chart."""
    st.markdown("#### Roofline")
    st.markdown(
        "Each point is one variant at one size. **Left of the ridge, bandwidth sets the limit (memory-bound); right of it, "
        "arithmetic does (compute-bound).**",
        help="The lines (roofs) are the limits of the device: memory bandwidth where a line rises, arithmetic rate where it is "
        "level. They meet at the ridge. The horizontal axis is the arithmetic intensity: operations per byte that the problem "
        "has to move. A kernel far below the lines is limited by something else: see its limiter in the table.",
    )


def no_timed_case(placement: Placement, level: Level) -> None:
    """Says that there is nothing to draw, and how many cases lack a time."""
    st.info(
        "None of the chosen runs has a correct time at this memory level. Choose another level or another run. "
        + _describe_untimed(placement, level),
        icon=":material/timer_off:",
    )


def remarks(
    placement: Placement, cases: Sequence[Placed], level: Level, source: RoofSource, devices: Sequence[Device]
) -> None:
    """What the chart does not show: missing roofs, cases without arithmetic, cases without a time, and why a memory roof is above
    the data sheet. One line, with reasons in its help text. `devices`: those of the runs."""
    sentences = []
    if placement.unroofed:
        names = " and ".join(placement.unroofed)
        instead = ", or choose data-sheet roofs" if ceilings_by_device(placement.unroofed) else ""
        sentences.append(
            f"The roofs of {names} are not measured: press Calibrate on the page Device of that machine{instead}."
            if source == "measured"
            else f"kernelviz has no data sheet of {names}: choose measured roofs."
        )
    if source == "datasheet":
        sentences.append("The limiter of a case is always determined with measured roofs.")
    without_arithmetic = sum(not c.drawable for c in cases)
    if without_arithmetic:
        sentences.append(f"{without_arithmetic} of {len(cases)} cases do no arithmetic, so they are in the table only.")
    above = [c.above_roof for c in cases if c.above_roof is not None]
    sentences += [f"{count_above_roofs(above)}."] if above else []
    sentences += [f"{sentence}." for sentence in _above_sheet(cases, devices)]
    sentences.append(_describe_untimed(placement, level))
    if any(sentences):
        st.caption(
            plain(" ".join(filter(None, sentences))), help=bullets(describe_above_roofs(above)) if above else None
        )


def _above_sheet(cases: Sequence[Placed], devices: Sequence[Device]) -> list[str]:
    """For each device whose highest measured memory roof is above its data sheet: by how much, and why."""
    said = []
    for device in {d.name: d for d in devices}.values():
        promised = next((r.bandwidth_bytes_per_s for r in ceilings(device.name) if r.level == "dram"), None)
        roofs = [c.light.memory for c in cases if c.light is not None and c.device == device.name]
        measured = [r for r in roofs if r.level == "dram" and not isinstance(r, DataSheetRoof)]
        highest = max(measured, key=lambda r: r.bandwidth_bytes_per_s or 0.0, default=None)
        if highest is not None and promised and (highest.bandwidth_bytes_per_s or 0.0) > promised:
            why = describe_above_sheet(highest, promised, None, device.last_level_cache_bytes)
            said.append(f"{device.name}: {why}")
    return said


def _describe_untimed(placement: Placement, level: Level) -> str:
    if not placement.untimed:
        return ""
    kind = "cold" if level == "dram" else "warm"
    cases = "1 case has" if placement.untimed == 1 else f"{placement.untimed} cases have"
    return f"{cases} no correct {kind} time (failed, wrong, or not measured) and cannot be drawn."


def roofline_chart(cases: Sequence[Placed], group: str | None, case: str | None, runs: Sequence[RunSummary]) -> None:
    """The chart. A click on a point chooses its case. `runs`: the runs of the cases."""
    points = [c for c in cases if c.drawable]
    shares = [c.share for c in points if c.share is not None]
    span = f" Shares of the roof: {min(shares) * 100:.1f} to {max(shares) * 100:.0f} %." if shares else ""
    roofs = "; ".join(f"{line.label} on {line.device}" for line in lines_of(points)) or "none known"
    title, devices = " and ".join(r.name for r in runs), " and ".join(dict.fromkeys(r.device for r in runs))
    charts.draw_clickable(
        plots.rates_by_intensity(cases, group=group, case=case), key="rooflines", zoom=True,
        picture=charts.picture(f"Roofline: {title}", devices, max(r.created_at for r in runs)), current=case,
        select=choice.follow_click,
        alt=f"Roofline of {len(points)} cases. Roofs: {roofs}.{span} The table beside the chart has the same values.",
    )  # fmt: skip
    if len({(c.run_id, c.group) for c in points}) > MOST_NAMED:
        st.caption(
            "The legend is hidden because there are many variants: hover over a point, or choose a variant above."
        )


def case_table(cases: Sequence[Placed], group: str | None, height: int) -> str | None:
    """The table of the cases; returns the key of the case whose row is selected."""
    listed = [c for c in cases if group in (None, c.group)]
    rows = table.show(
        placed_columns(listed, View.WIDE), listed, height=height, key=f"placed_{group or ''}", on_select="rerun",
        selection_mode="single-row", alt="Every case with its time, share of the roof and limiter",
    )  # fmt: skip
    return listed[rows[0]].key if rows and rows[0] < len(listed) else None


def case_facts(case: Placed) -> None:
    """One case: time, rates, distance to the roof, and its limiter with the evidence."""
    with st.container(border=True, key="one_case"):
        st.markdown(f"**{plain(choice.case_label(case))}**")
        st.markdown(
            f"{plain(format_time(case.figure, case.levels))} · {plain(format_rates(case))}  \n{plain(describe_distance(case))}"
        )
        if case.ceilings:
            st.markdown(
                "\n".join(f"- {plain(describe_ceiling(ceiling))}" for ceiling in case.ceilings),
                help="Ceilings of arithmetic: what the data sheet states; SMs × FLOP per SM and clock × the SM clock that was "
                "measured in these calls; and a loop of tensor-core instructions on operands in registers and shared memory, "
                "with normal data, which Calibrate measures.",
            )
        if case.above_roof is not None:
            st.markdown(plain(describe_above_roof(case.above_roof)))
        meaning = describe_meaning(case.limiter.kind, on_gpu=case.on_gpu)
        st.markdown(f"**{plain(format_limiter(case.limiter.kind))}**: {plain(meaning)}")
        evidence = [plain(describe_evidence(fact)) for fact in case.limiter.evidence]
        missing = [f"unknown: {plain(describe_missing(fact))}" for fact in case.limiter.missing]
        st.markdown("\n".join(f"- {line}" for line in (*evidence, *missing)))
        _counters(case)
        if case.commands is not None:
            with st.expander(
                "Profile it in a terminal", expanded=case.limiter.kind == "unclear", icon=":material/terminal:"
            ):
                profiler_commands.draw(case.commands)
        st.markdown(
            f":small[:gray[{plain(format_badge(case.quality))}]]",
            help=plain(describe_quality(case.quality)),
        )
        with st.container(horizontal=True, gap="small", vertical_alignment="center"):
            site.run_link("Open its run", case.run_id)
            st.button("Show all cases", key="show_all", icon=":material/close:", on_click=choice.show_all_cases)


def _counters(case: Placed) -> None:
    """How the counters of the case were read, and its traffic if the evidence for the limiter does not state it."""
    if case.counters is None:
        return
    traffic = describe_traffic(case.cost, case.counters)
    if str(traffic) and not any(fact.kind == "counted_dram" for fact in case.limiter.evidence):
        st.markdown(f"{plain(traffic)}, in a cold call." if case.counters.cold else f"{plain(traffic)}.")
    st.caption(plain(describe_counting(case.counters)))


def _named(variants: Sequence[str]) -> str:
    """The variants, or the first of many."""
    names = ", ".join(plain(format_variant(v)) for v in variants[:_MOST_NAMED])
    return names if len(variants) <= _MOST_NAMED else f"{names} and {len(variants) - _MOST_NAMED} more"


def limiter_counts(cases: Sequence[Placed]) -> None:
    """How many cases each limiter has and of which variants, what it means, and the rule that determines it."""
    counts = Counter((c.limiter.kind, lacks_roofs(c.limiter)) for c in cases)
    variants = {
        key: dict.fromkeys(c.variant for c in cases if (c.limiter.kind, lacks_roofs(c.limiter)) == key)
        for key in counts
    }
    st.markdown("##### What limits these cases")
    on_gpu = any(c.on_gpu for c in cases)
    lines = (
        f"- **{limiter}** ({units.counted(n, 'case')}): "
        f"{WITHOUT_ROOFS if no_roofs else describe_meaning(limiter, on_gpu=on_gpu)} "
        f":gray[({_named(list(variants[limiter, no_roofs]))})]"
        for (limiter, no_roofs), n in counts.most_common()
    )
    st.markdown("\n".join(lines))
    with st.expander("How the limiter is determined", icon=":material/rule:"):
        st.markdown(_RULE)
