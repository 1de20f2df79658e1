"""What the page Roofline says: short sentences, one place for each."""

from __future__ import annotations

from kernelviz.bench.roofline import RoofSource
from kernelviz.core.run import Level
from kernelviz.metrics.limiter import MEANINGS as MEANINGS
from kernelviz.metrics.limiter import LimiterWord

INTRO = (
    "A point is a case: its arithmetic for each byte that it must move (across), and its speed (up). The lines are what the "
    "device can do: **under a slope memory is the limit, under a level line arithmetic.**"
)
NOTHING_CHOSEN = (
    "**No run is chosen.** Choose some above, of one GPU or of several. Each is held against its own machine's roofs."
)
NOTHING_TIMED = "None of these runs has a correct time here yet."
LEVELS: dict[Level, str] = {"dram": "DRAM · cold times", "l2": "L2 · warm times"}
LEVELS_HELP = (
    "DRAM: the caches are flushed before each call, so its data come from memory. L2: they lie where the call itself leaves "
    "them. A problem too large for the L2 is held against DRAM there too."
)
SOURCES: dict[RoofSource, str] = {"measured": "measured roofs", "datasheet": "data-sheet roofs"}
SOURCES_HELP = (
    "Measured: by Calibrate on the machine of the run, with the same method as the cases. Data sheet: what the maker promises; "
    "no program reaches all of it, and no sheet states the L2's bandwidth."
)
UNROOFED: dict[RoofSource, str] = {
    "measured": "No roofs were measured on {devices}: its points have no lines. Calibrate on the page Device measures them.",
    "datasheet": "No data sheet of {devices} is known here, so its points have no lines: nothing is guessed.",
}
SHEET_LIMITER = "What limits a case is always read from measured roofs, whichever are drawn."
RULE = """
The limiter is read from times and facts, without hardware counters. The first that holds is the answer:

1. **launch**: empty kernels of the same number are 40 % of the time or more.
2. **L2** (warm times): faster than memory could deliver, or 60 % of the L2's stream or more.
3. **compute**, **bandwidth**: 60 % of that roof or more. Nsight Compute draws its line at 60 % too.
4. **bandwidth** of a chain: several kernels, each as long as a few passes over the problem's bytes.
5. **latency**: fewer blocks than multiprocessors, a theoretical occupancy of at most 25 %, or too short to fill the GPU.
6. **unclear**: none of these. Only counters (ncu) could tell.
"""
NO_ARITHMETIC = (
    "{count} of {all} cases do no arithmetic (a copy has no place on this chart): they are in the table only."
)


def meaning_words(word: LimiterWord) -> str:
    """A limiter and what to do about it, as Markdown."""
    return f"**{word}** {MEANINGS[word]}"
