"""The sections of the page Method. `pages/method.py` puts them in reading order."""

from collections.abc import Sequence

import streamlit as st

from kernelviz import plots
from kernelviz.bench import Bench
from kernelviz.core import CHEATS, Device, Roof, Selftest
from kernelviz.formats import shipped_runs
from kernelviz.metrics.figures import HOST_BOUND
from kernelviz.metrics.quality import LEVELS, PartName, Quality, quality
from kernelviz.plots.timeline import describe_timeline
from kernelviz.text import describe_part, describe_quality, format_sizes, format_variant
from kernelviz.text import method as text
from kernelviz.text.cheats import EXPLANATIONS, NAMES
from kernelviz.text.naive import NAIVE_USE, WHAT, WRONG
from kernelviz.text.times import FIGURES
from kernelviz.ui.shared import charts, device_strip
from kernelviz.ui.shared.text import markdown_table, plain, when

COLD, SELFTEST, TIMINGS, VERDICTS = "Device cold", "Selftest", "Timings of a case", "Verdicts"
NAIVE = "Naive protocol"
QUALITY, ROOFS, REJECTED, UNTRUSTED = "Measurement quality", "Roofs", "Rejected results", "Untrusted variants"
SECTIONS = (COLD, SELFTEST, TIMINGS, NAIVE, VERDICTS, QUALITY, ROOFS, REJECTED, UNTRUSTED)
"""The headings, in reading order."""


def title() -> None:
    """Title, and links to the sections."""
    st.markdown("#### Method: how each number is measured")
    # The anchors that Streamlit gives to headings.
    st.markdown(" · ".join(f"[{name}](#{name.lower().replace(' ', '-')})" for name in SECTIONS))


def device_cold(device: Device, last: Selftest | None) -> None:
    """What the main metric is, with the timing diagram of a real measurement."""
    st.markdown(f"##### {COLD}")
    st.markdown(text.COLD[device.kind])
    selftests = [last, *shipped_runs.selftests()]
    source, timeline = next(((s, s.timeline) for s in selftests if s is not None and s.timeline), (None, None))
    if source is None or timeline is None:
        st.info(text.NOT_PICTURED[device.kind], icon=":material/timeline:")
        return
    own = last is not None and source.id == last.id
    if not own and source.environment.device.kind != device.kind:
        st.markdown("On a GPU, the device itself records when each kernel started and ended:")
    charts.draw(
        plots.marks_by_time(timeline), key="timeline", alt=describe_timeline(timeline),
        picture=charts.picture(f"one measurement: {timeline.case}", source.environment.device.name, source.created_at),
    )  # fmt: skip
    case = f"{timeline.case}, {source.environment.device.name}, {when(source.created_at)}"
    origin = "" if own else " This recording comes with kernelviz, because nothing was recorded on this machine yet."
    st.caption(plain(f"A real measurement: {case}. Only the shaded part counts as the time of the call.{origin}"))


def timings() -> None:
    """The timings of a case, and the question that each answers."""
    st.markdown(f"##### {TIMINGS}")
    st.markdown("Each case has several timings, because each answers a different question.")
    st.markdown("\n".join(f"- **{f.name}** {plain(f.question)}" for f in FIGURES))
    st.markdown(
        "**Call eager**, **enqueue** and **call by graph** are times by the host clock, without a tracer: the median of up to "
        "1,000 calls (p50), and the times that 90 % and 99 % of them do not exceed (p90, p99). "
        f"**CPU-bound**: back-to-back calls take more than {HOST_BOUND:g}× the warm kernel time, and so does the "
        "CPU to enqueue a call, so the GPU waits for the CPU."
    )


def naive_protocol(device: Device) -> None:
    """What the naive protocol times, what it gets wrong, and how to measure it beside ours."""
    st.markdown(f"##### {NAIVE}")
    st.markdown(f"{plain(WHAT[device.kind])}\n\n{plain(WRONG)}")
    st.markdown(NAIVE_USE)


def verdicts() -> None:
    """How two variants are compared."""
    st.markdown(f"##### {VERDICTS}")
    st.markdown(text.VERDICT)


def quality_example(bench: Bench) -> tuple[str, Quality] | None:
    """A real result and its measurement quality: of the newest run here, else of one that came with the package."""
    for listed in (*bench.runs(3), *bench.history.shipped()[:1]):
        run = bench.load(listed.id)
        for result in run.results:
            rating = quality(result, clock=run.method.clock) if result.timing is not None else None
            if rating is not None:
                sizes = format_sizes(result.problem)
                return f"{run.plan.op} {format_variant(result.variant)}, {sizes}, {run.environment.device.name}", rating
    return None


def measurement_quality(example: tuple[str, Quality] | None) -> None:
    """The parts of the quality line of a result, with the line of a real result as an example."""
    st.markdown(f"##### {QUALITY}")
    st.markdown("Each result has one line about its quality: on every page, in the terminal and in every file.")
    values: dict[PartName, str] = {}
    if example is not None:
        case, rating = example
        values = {p.name: str(describe_part(p)) for p in rating.parts}
        st.markdown(f"> {plain(describe_quality(rating))}  \n> :small[:gray[{plain(case)}]]")
    st.markdown(
        "The line starts with the level of its worst part:\n\n"
        + "\n".join(f"- {text.describe_level(n)}" for n in LEVELS)
    )
    rows = [(f"**{name}**", plain(values.get(name, "–")), plain(meaning)) for name, meaning in text.PARTS.items()]
    with st.container(key="parts"):
        if values:
            st.markdown(markdown_table(("part", "in this example", "meaning"), rows))
        else:
            st.markdown(markdown_table(("part", "meaning"), [(name, meaning) for name, _, meaning in rows]))


def roof_rules(roofs: Sequence[Roof]) -> None:
    """What a roof is, and whether this device's were measured."""
    st.markdown(f"##### {ROOFS}")
    st.markdown(
        f"This device: {device_strip.format_roofs(roofs)}."
        if roofs
        else "The roofs of this device were **not measured** yet: press **Calibrate** on the page Device."
    )
    st.markdown(text.ROOFS)


def rejected_results() -> None:
    """The ways to cheat that are rejected, by name, and what a judge does about variants that are not trusted."""
    st.markdown(f"##### {REJECTED}")
    st.markdown(text.REFUSED)
    st.markdown("\n".join(f"- **{plain(NAMES[c])}**: {plain(EXPLANATIONS[c])}" for c in CHEATS))
    st.markdown(f"##### {UNTRUSTED}")
    st.markdown(text.UNTRUSTED)
