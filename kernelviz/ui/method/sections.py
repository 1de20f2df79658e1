"""The sections of the page Method: how a number is made, in the order in which one doubts it."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from kernelviz import plots
from kernelviz.bench import Bench
from kernelviz.core.cheats import CHEATS
from kernelviz.core.run import Device, Roof
from kernelviz.core.selftest import Selftest, Timeline
from kernelviz.formats import shipped_runs
from kernelviz.metrics.figures import FIGURES, HOST_BOUND
from kernelviz.metrics.quality import LEVELS, PartName, Quality, quality
from kernelviz.metrics.sweep import size_words
from kernelviz.plots.timeline import counted_words
from kernelviz.plots.variant_styles import variant_words
from kernelviz.text import method as words
from kernelviz.text.cheats import EXPLANATIONS, NAMES
from kernelviz.text.quality import describe_part, describe_quality
from kernelviz.ui.shared import device_strip, view_filters
from kernelviz.ui.shared.text import plain, when

_SECTIONS = (
    "Device cold", "Selftest", "Five figures", "Verdicts", "Trust line", "Roofs", "What is refused",
)  # fmt: skip


_CSS = """
<style>
/* The example is as readable as the rest: Streamlit fades quotations to 2.6:1. */
[data-testid="stMarkdownContainer"] blockquote { opacity: 1; color: inherit; }
/* On a phone a row of these tables is a card: four columns would stand one word wide. */
@media (max-width: 640px) {
  :is([class*="checks"], .st-key-parts) thead { display: none; }
  :is([class*="checks"], .st-key-parts) tr { display: block; padding: 0.35rem 0; }
  :is([class*="checks"], .st-key-parts) td { display: block; border: none; padding: 0.05rem 0.6rem; }
  :is([class*="checks"], .st-key-parts) td:empty { display: none; }
  [class*="checks"] td:nth-child(3)::before { content: "found: "; }
  [class*="checks"] td:nth-child(4)::before { content: "allowed: "; }
}
</style>
"""


def heading() -> None:
    """Title, and links to the sections."""
    st.html(_CSS)
    st.markdown("#### Method: how a number is made")
    st.markdown(" · ".join(f"[{name}](#{_anchor(name)})" for name in _SECTIONS))


def _anchor(name: str) -> str:
    """As Streamlit makes it of a heading."""
    return name.lower().replace(" ", "-")


def section(name: str) -> None:
    """The heading of one of the sections."""
    st.markdown(f"##### {name}")


def device_choice(bench: Bench) -> Device:
    """The device that the page speaks of; a choice where there are several."""
    ids = [d.id for d in bench.devices()]
    default = bench.default_device()
    if len(ids) == 1:
        return bench.device(default)
    view_filters.seed("on", ids, default)
    chosen = st.segmented_control(
        "Device", ids, key="on", required=True, format_func=lambda i: f"{bench.device(i).name} ({i})"
    )
    view_filters.keep("on", chosen, default)
    return bench.device(chosen or default)


def device_cold(device: Device, last: Selftest | None) -> None:
    """What the headline is, with the picture of a real measurement."""
    section("Device cold")
    st.markdown(words.COLD[device.kind])
    found = pictured(last)
    if found is None:
        st.info(words.NOT_PICTURED[device.kind], icon=":material/timeline:")
        return
    made, timeline = found
    own = last is not None and made.id == last.id
    if not own and made.environment.device.kind != device.kind:
        st.markdown("On a GPU the device itself tells when its kernels began and ended:")
    st.plotly_chart(
        plots.marks_by_time(timeline), key="timeline", config=view_filters.CHART, alt=counted_words(timeline)
    )
    of = f"{timeline.case}, {made.environment.device.name}, {when(made.created_at)}"
    came = "" if own else " It came with kernelviz; this machine has none of its own."
    st.caption(plain(f"A real measurement: {of}. Shaded: what became a sample; nothing else is in the time.{came}"))


def pictured(last: Selftest | None) -> tuple[Selftest, Timeline] | None:
    """The newest picture of a measurement on this device, else one that came with the package."""
    for made in (*((last,) if last is not None else ()), *shipped_runs.selftests()):
        if made.timeline is not None:
            return made, made.timeline
    return None


def figures() -> None:
    """The figures of a case and their questions."""
    section("Five figures")
    st.markdown("Every case has them, because people ask several questions. Enqueue and busy are parts of one.")
    st.markdown("\n".join(f"- **{f.name}** {plain(f.question)}" for f in FIGURES))
    st.markdown(
        "Calls are timed by the host clock with no tracer attached, 1,000 of them, as p50, p90 and p99. "
        f"**Host-bound**: the loop takes over {HOST_BOUND:g} × device warm, so the device waits for Python."
    )


def verdicts() -> None:
    """How two variants are compared."""
    section("Verdicts")
    st.markdown(words.VERDICT)


def example(bench: Bench) -> tuple[str, Quality] | None:
    """What a real result is of and what stands behind it: of the newest run here, else of one that came with the package."""
    for listed in (*bench.runs(3), *bench.history.shipped()[:1]):
        run = bench.load(listed.id)
        for result in run.results:
            found = quality(result, clock=run.method.clock) if result.timing is not None else None
            if found is not None:
                sizes = size_words(result.problem)
                return f"{run.plan.op} {variant_words(result.variant)}, {sizes}, {run.environment.device.name}", found
    return None


def trust_line(shown: tuple[str, Quality] | None) -> None:
    """The line that stands with each result, part by part, with a real one."""
    section("Trust line")
    st.markdown(
        "One line stands with each result: on every page, in the terminal, in every file. Always in this order."
    )
    said: dict[PartName, str] = {}
    if shown is not None:
        of, found = shown
        said = {p.name: str(describe_part(p)) for p in found.parts}
        st.markdown(f"> {plain(describe_quality(found))}  \n> :small[:gray[{plain(of)}]]")
    st.markdown(
        "It begins with the level of its worst part:\n\n" + "\n".join(f"- {words.level_words(n)}" for n in LEVELS)
    )
    lines = [
        "| part | here | what it says |" if said else "| part | what it says |",
        f"|---|---|{'---|' if said else ''}",
    ]
    for name, means in words.PARTS.items():
        here = f" {plain(said.get(name, '–'))} |" if said else ""
        lines.append(f"| **{name}** |{here} {plain(means)} |")
    with st.container(key="parts"):
        st.markdown("\n".join(lines))


def roofs(found: Sequence[Roof]) -> None:
    """What a share of the roof is of."""
    section("Roofs")
    st.markdown(
        f"This device: {device_strip.roof_words(found)}." if found else "This device is **not calibrated** yet."
    )
    st.markdown(words.ROOFS)


def refused() -> None:
    """The cheats, by name."""
    section("What is refused")
    st.markdown(words.REFUSED)
    st.markdown(
        "\n".join(
            f"- **{plain(name)}**: {plain(reason)}" for name, reason in ((NAMES[c], EXPLANATIONS[c]) for c in CHEATS)
        )
    )
