"""The panels of the page Compare. `pages/compare.py` puts them in reading order."""

from functools import partial

import streamlit as st

from kernelviz import plots
from kernelviz.core import units
from kernelviz.metrics.comparability import one_run
from kernelviz.metrics.comparison import PAIR_KINDS, Comparison, Pair
from kernelviz.metrics.figures import figure_of
from kernelviz.metrics.statistics import Interval
from kernelviz.metrics.sweep import varying_axes
from kernelviz.tables.column import View
from kernelviz.tables.comparison import pair_columns
from kernelviz.text import (
    Text,
    Tile,
    describe_comparison,
    describe_noise,
    describe_pair,
    describe_quality_of,
    describe_refusals,
    describe_samples,
    describe_unpaired,
    format_badge_of,
    format_case,
    format_change,
    format_problem,
    format_time,
    format_variant,
)
from kernelviz.text.comparison import KIND_NAMES, MEANINGS, SIGNS, describe_verdict_of, mean_basis, noisy
from kernelviz.text.differences import differences
from kernelviz.ui.shared import charts, site, table, tiles, view_filters
from kernelviz.ui.shared.text import plain

MOST_BARS = 24
_WORST = f"the worst {MOST_BARS}"
_RULE = """
- **Pairs**: the same case in both runs. If one variant is chosen on each side, the two variants at each size. The ratio is the
  time of B divided by the time of A.
- **Two runs** have no rounds in common. The interval is a 95 % bootstrap of the ratio of the medians, in which the blocks of
  each run are resampled separately. For a verdict, the whole interval must be beyond the noise floor. The noise floor is the
  largest of 0.5 %, the difference of each run's baseline from itself, and the largest change among the cases with the
  **identical** code.
- **Identical** means the same source, compilers and driver, and the same kernels with the same grid, block, registers and shared
  memory. If the time of such a case changes, its environment changed (card, clock, addresses), not the kernel.
- **Two variants of one run** were measured in the same rounds, so the verdict is that of the page Bench: the ratio in each round.
- **Not comparable**: one side with burst load and the other with sustained load, different input data, a different timer or
  launch method, a CPU and a GPU, tracing overhead that is unknown or was subtracted on one side only, or no correct time on one
  side.
"""


def title() -> None:
    """Title, and how to read the page."""
    st.markdown("#### Compare")
    st.markdown(
        "Each case (one variant at one size) of run **B** is compared with the same case of run **A**, the baseline.",
        help="B is faster or slower only if the whole 95 % interval of the time ratio is beyond the noise floor. Times that were "
        "measured in different ways are not compared.",
    )


def same_run() -> None:
    """Says that there is nothing to compare, and what to choose instead."""
    st.info(
        "A and B are the same run. Choose a different variant for each side, or another run for one of them.",
        icon=":material/call_split:",
    )


def verdict_tiles(comparison: Comparison) -> None:
    """How many cases are slower, faster, the same or unclear, and the mean ratio of the times."""
    counts, judged, mean = comparison.counts, comparison.judged, comparison.mean_ratio
    worst = next((p for p in judged if p.kind == "slower"), None)
    best = next((p for p in reversed(judged) if p.kind == "faster"), None)
    identical = sum(p.kind == "same code" for p in comparison.pairs)
    tiles.draw(
        (
            Tile("▼ Slower", f"{counts['slower']} of {len(judged)} slower", _change("worst", worst, comparison)),
            Tile("▲ Faster", f"{counts['faster']} of {len(judged)} faster", _change("best", best, comparison)),
            Tile(
                "= Same, ? unclear",
                f"{counts['same']} same, {counts['unclear']} unclear",
                f"{identical} identical, {counts['not comparable']} not comparable",
            ),
            Tile(
                "Mean time, B relative to A",
                "no verdict" if mean is None else str(format_change(Interval(mean, None, None))),
                str(mean_basis(comparison)),
            ),
        )
    )


def _change(which: str, pair: Pair | None, comparison: Comparison) -> str:
    if pair is None or pair.ratio is None:
        return ""
    return f"{which}: {format_change(pair.ratio)}, {_case(pair, comparison)}"


def _case(pair: Pair, comparison: Comparison) -> Text:
    """The name of a case, with the axes that differ between the cases."""
    return format_case(pair, varying_axes([p.problem for p in comparison.pairs]), by_problem=comparison.by_problem)


def cases_without_time_in_b(comparison: Comparison) -> None:
    """The cases that had a correct time in A and have none in B."""
    broken = [p for p in comparison.pairs if p.broken]
    if not broken:
        return
    names = "; ".join(str(_case(p, comparison)) for p in broken[:6])
    more = f" and {len(broken) - 6} more" if len(broken) > 6 else ""
    st.error(
        f"**{units.counted(len(broken), 'case')} had a correct time in A but not in B**: {plain(names)}{more}.",
        icon=":material/error:",
    )


def cases_without_verdict(comparison: Comparison) -> None:
    """Why cases are not comparable: a warning if no case has a verdict, else a remark."""
    reasons = str(describe_refusals(comparison))
    if reasons and not comparison.judged:
        st.warning(plain(reasons), icon=":material/block:")
    elif reasons:
        st.caption(plain(reasons))


def measurement_noise(comparison: Comparison) -> None:
    """How much the times of the two runs vary without a change of code."""
    st.markdown("##### Measurement noise")
    show = partial(st.warning, icon=":material/waves:") if noisy(comparison) else st.markdown
    show(plain(describe_noise(comparison)))


def environment_differences(comparison: Comparison) -> None:
    """What differs between the runs except the code: device, driver, versions, method."""
    st.markdown("##### Environment differences")
    entries = differences(comparison)
    if not entries:
        sides = "are from one run, with" if one_run(comparison.a, comparison.b) else "have"
        st.markdown(f"None: both sides {sides} the same device, driver, library versions and method.")
        return
    with st.container(key="differs"):
        st.markdown("\n".join(f"- :red[**≠ {plain(d.what)}**: {plain(d.values)}]" for d in entries))


def verdict_bars(comparison: Comparison) -> None:
    """A bar for each case, the worst first. A click chooses the case that `case_box` shows."""
    every, most = f"all {len(comparison.pairs)}", None
    if len(comparison.pairs) > MOST_BARS:
        rows = view_filters.choose(
            st.segmented_control, "Cases shown", [_WORST, every], _WORST, key="rows", label_visibility="collapsed"
        )
        most = MOST_BARS if rows == _WORST else None
    charts.draw_clickable(
        plots.ratio_by_case(comparison, most=most), key="ratios", alt=describe_comparison(comparison),
        picture=_picture(comparison, "time of B divided by time of A"), select=_choose_case,
        current=st.session_state.get("case"),
    )  # fmt: skip


def _picture(comparison: Comparison, title: str) -> charts.Picture:
    return charts.picture_of([comparison.a, comparison.b], title)


def _choose_case(key: str | None) -> None:
    if key is not None:
        st.session_state["compare_pending"] = key


def case_box(comparison: Comparison) -> Pair:
    """The case to look at: the worst one until somebody chooses another, here or by a click on a bar or a row."""
    keys = {p.key: p for p in comparison.pairs}
    pending = st.session_state.pop("compare_pending", None)
    if pending in keys:
        st.session_state["case"] = pending
    if st.session_state.get("case") not in (None, *keys):
        del st.session_state["case"]
    worst = next((p.key for p in comparison.pairs if p.ratio is not None), comparison.pairs[0].key)
    key = view_filters.choose(
        st.selectbox, "Case", list(keys), worst, key="case", label_visibility="collapsed",
        format_func=lambda k: f"{_case(keys[k], comparison)}: {describe_pair(keys[k])}",
    )  # fmt: skip
    return keys[key]


def samples_of_case(comparison: Comparison, pair: Pair) -> None:
    """The distribution of the samples of both sides."""
    alt = describe_samples([r.variant for r in (pair.before, pair.after)], comparison.headline)
    picture = _picture(comparison, f"{comparison.headline} samples, {_case(pair, comparison)}")
    charts.draw(plots.shares_by_time(comparison, pair), key="shares", alt=alt, picture=picture)


def verdict_of_case(comparison: Comparison, pair: Pair) -> None:
    """The verdict of one case with its reason, and both times with their measurement quality."""
    with st.container(border=True, key="one_pair"):
        st.markdown(f"**{plain(format_problem(pair.problem))}**  \n{plain(describe_pair(pair))}")
        if pair.kind != "not comparable":  # there the verdict itself contains the reason
            st.markdown(plain(describe_verdict_of(pair)))
        for side, run, result in (("A", comparison.a, pair.before), ("B", comparison.b, pair.after)):
            figure = figure_of(result.timing, comparison.headline)
            time = f"no correct {comparison.headline} time" if figure is None else format_time(figure)
            rated = result, comparison.headline, run.method.clock
            st.markdown(
                f"{side}: **{plain(format_variant(result.variant))}** {plain(time)}  \n"
                f":small[:gray[{plain(format_badge_of(*rated))}]]",
                help=plain(describe_quality_of(*rated)),
            )
            site.run_link(f"Open run {side}", run.id)


def case_table(comparison: Comparison) -> None:
    """Every pair in numbers. A click on a row chooses the case that `case_box` shows."""
    chosen = table.show(
        pair_columns(comparison, View.WIDE), comparison.pairs, key="pairs", on_select="rerun", selection_mode="single-row",
        alt="Every pair with its verdict, change, interval and both times",
    )  # fmt: skip
    key = comparison.pairs[chosen[0]].key if chosen and chosen[0] < len(comparison.pairs) else None
    view_filters.follow({"seen_row": key}, "compare_pending")


def cases_in_one_run_only(comparison: Comparison) -> None:
    """How many cases only one of the runs has."""
    for line in describe_unpaired(comparison):
        st.caption(plain(line))


def verdict_rule(comparison: Comparison) -> None:
    """The rule behind the verdicts, and how many cases have each."""
    with st.expander("How the verdict is determined", icon=":material/rule:"):
        st.markdown(_RULE)
        counts = comparison.counts
        st.markdown("\n".join(f"- {SIGNS[v]} **{KIND_NAMES[v]}** ({counts[v]}): {MEANINGS[v]}" for v in PAIR_KINDS))
