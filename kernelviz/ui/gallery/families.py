"""The recorded runs as cards and as lists of links, and the ops that have no recorded run."""

from collections.abc import Sequence
from functools import partial

import streamlit as st

from kernelviz.bench import Bench
from kernelviz.bench.gallery import Card, Family, GalleryOp
from kernelviz.core import units
from kernelviz.core.problem import Direction
from kernelviz.formats.recordings import Recording
from kernelviz.ops import Variant
from kernelviz.plots.sketch_image import thumbnail
from kernelviz.text import format_variant
from kernelviz.text.insight import describe_sketch, insight_sentence
from kernelviz.ui.bench.form import default_form
from kernelviz.ui.gallery import choice, links
from kernelviz.ui.shared import callbacks, session, site
from kernelviz.ui.shared.text import plain

CARD_PX = 325
"""Four cards side by side on a page of 1440 pixels, and one on a phone."""
LIST_PX = 440
"""Three lists side by side on a page of 1440 pixels."""


def open_started_run() -> None:
    """Open the run that a button of this page has started, if any."""
    actions = callbacks.actions()
    if actions.started_run is not None:
        started, actions.started_run = actions.started_run, None
        st.switch_page(site.page("bench"), query_params={"run": started})


def cards(bench: Bench, family: str, of_family: Sequence[Card]) -> None:
    """The cards of a family."""
    with st.container(key=f"family_{family.replace(' ', '_')}", gap="small"):
        st.markdown(f"##### {plain(family).capitalize()}")
        with st.container(horizontal=True, gap="small"):
            for card in of_family:
                _card(bench, card)


def _card(bench: Bench, card: Card) -> None:
    run, recording = card.run.run, card.run.recording
    with st.container(border=True, width=CARD_PX, gap="xsmall", key=f"card_{run.id}"):
        backward = recording.direction == "backward"
        site.run_link(f"**{plain(run.op)}**{' backward' if backward else ''} · {plain(run.device)}", run.id)
        alt = describe_sketch(recording.sketch, recording.insight)
        with st.container(key=f"thumbnail_{run.id}"):
            st.image(thumbnail(run.op, recording.sketch), width="stretch", alt=str(alt))
        st.markdown(plain(insight_sentence(recording.insight)))
        every = [v for v in card.op.op.variants if not backward or "backward" in v.directions]
        missing = len(every) - recording.variants
        variants = units.counted(recording.variants, "variant")
        facts = (
            recording.dtype,
            units.counted(recording.sizes, "size"),
            f"{variants} ({missing} more of the op not in this run)" if missing > 0 else variants,
            f"recorded {run.created_at[:10]}",
        )
        st.caption(plain(" · ".join(facts)), help=_not_in_run(every, recording) if missing > 0 else None)
        if card.other_runs:
            with st.container(key=f"others_{run.id}"):
                st.html(links.other_runs(card))
        _measure_here(bench, card.op, key=f"measure_again_{run.id}", direction=recording.direction)


def _not_in_run(every: Sequence[Variant], recording: Recording) -> str:
    """Which variants of the op a run does not have, in Markdown. Their names are known where the chart has all of the run's."""
    reason = (
        "They were added after it was recorded, do not solve its sizes, or are measured only where a plan names them."
    )
    if len(recording.sketch.variants) != recording.variants:
        return reason
    names = ", ".join(format_variant(v.name) for v in every if v.name not in recording.sketch.variants)
    return plain(f"Not in this run: {names}. {reason}")


def lists(families: Sequence[Family]) -> None:
    """A table of links for each family whose charts are not drawn, and a button that chooses the family."""
    if not families:
        return
    st.markdown("##### More recorded runs")
    with st.container(horizontal=True, gap="small", key="listed_families"):
        for family in families:
            with st.container(border=True, width=LIST_PX, gap="xsmall", key=f"listed_{family.name.replace(' ', '_')}"):
                st.html(links.table(family))
                st.button(
                    f"Show the charts of {plain(family.name)}",
                    key=f"charts_of_{family.name}",
                    icon=":material/grid_view:",
                    type="tertiary",
                    on_click=choice.choose_family,
                    args=(family.name,),
                )


def ops_without_a_run(bench: Bench, families: Sequence[Family]) -> None:
    """The ops without a recorded run, by family, and how to measure each."""
    if not any(family.missing for family in families):
        return
    st.markdown("##### Not recorded yet")
    st.caption(
        "These ops can be measured on this machine. The button measures the op's default sizes and variants; in a terminal, "
        "`kernelviz run OP` does the same."
    )
    for family in families:
        if family.missing:
            with st.container(key=f"missing_{family.name.replace(' ', '_')}", gap="xsmall"):
                st.markdown(f"**{plain(family.name).capitalize()}**")
                for one in family.missing:
                    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
                        variants = units.counted(len(one.op.variants), "variant")
                        st.markdown(
                            f"**{plain(one.op.name)}** {plain(one.op.summary)} :gray[· {variants}]", width="stretch"
                        )
                        _measure_here(bench, one, key=f"measure_{one.op.name}")


def _measure_here(bench: Bench, one: GalleryOp, *, key: str, direction: Direction = "forward") -> None:
    device = bench.device(bench.default_device())
    callbacks.button(
        "Measure this here",
        partial(_start, bench, one.op.name, direction, callbacks.actions(), session.owner()),
        key=key,
        icon=":material/play_arrow:",
        type="tertiary",
        disabled=not device.usable,
        help=plain(
            f"Measures {'the backward pass of ' if direction == 'backward' else ''}{one.op.name} with its default sizes and "
            f"variants on {device.name}."
        ),
    )


def _start(bench: Bench, op: str, direction: Direction, actions: callbacks.Actions, owner: str) -> None:
    form = default_form(bench, op, direction=direction)
    actions.started_run = bench.run(form.plan(bench), form.method, owner=owner)
