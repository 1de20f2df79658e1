"""The sentences of the page Roofline."""

from kernelviz.bench.roofline import RoofSource
from kernelviz.core import Level
from kernelviz.metrics.limiter import MEANINGS as MEANINGS
from kernelviz.metrics.limiter import LimiterWord

INTRO = (
    "Each point is a case: one variant at one size. Across: its arithmetic intensity, the operations for each byte that it has "
    "to move. Up: its arithmetic rate. The lines are the limits of the device. **Left of the ridge, where the line rises, a "
    "case is memory-bound; right of it, where the line is level, compute-bound.**"
)
NOTHING_CHOSEN = (
    "**No run is chosen.** Choose one or several above, from one GPU or several. Each is drawn under the roofs of its own "
    "machine."
)
NOTHING_TIMED = "None of the chosen runs has a correct time at this memory level. Choose another level or another run."
LEVELS: dict[Level, str] = {"dram": "DRAM · cold times", "l2": "L2 · warm times"}
LEVELS_HELP = (
    "DRAM: times with flushed caches, so data come from device memory. L2: times of repeated calls, whose data stay in the L2; "
    "a problem that does not fit in the L2 is compared with the DRAM roof here too."
)
SOURCES: dict[RoofSource, str] = {"measured": "measured roofs", "datasheet": "data-sheet roofs"}
SOURCES_HELP = (
    "Measured: bandwidth and arithmetic rates that Calibrate measured on the machine of the run. Data sheet: the vendor's peak "
    "rates, which no program reaches in full and which do not include the L2's bandwidth."
)
UNROOFED: dict[RoofSource, str] = {
    "measured": "The roofs of {devices} were not measured, so its points have no lines. Run Calibrate on the page Device of "
    "that machine.",
    "datasheet": "kernelviz has no data sheet of {devices}, so its points have no lines. Choose measured roofs instead.",
}
SHEET_LIMITER = "The limiter of a case is always determined with measured roofs, even while data-sheet roofs are drawn."
RULE = """
The limiter is derived from times and launch facts, without hardware counters. The first rule that applies is the answer:

1. **launch**: empty kernels of the same number take 40 % of the time or more.
2. **L2** (warm times): faster than DRAM bandwidth allows, or at 60 % of the L2 bandwidth or more.
3. **compute**, **bandwidth**: at 60 % of that roof or more. Nsight Compute uses 60 % too.
4. **bandwidth** of a chain: several kernels, each as long as a few passes over the problem's bytes.
5. **latency**: fewer blocks than multiprocessors, a theoretical occupancy of at most 25 %, or too short to fill the GPU.
6. **unclear**: no rule applies. Hardware counters (`ncu`) can tell more.
"""
NO_ARITHMETIC = (
    "{count} of {all} cases do no arithmetic (a copy, for example), so they have no point in the chart: see the table."
)


def describe_limiter(limiter: LimiterWord) -> str:
    """A limiter and what to do about it, as Markdown."""
    return f"**{limiter}** {MEANINGS[limiter]}"
