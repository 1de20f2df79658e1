"""What the page Compare says: short sentences, one place for each."""

from __future__ import annotations

from kernelviz.metrics.comparison import PairWord
from kernelviz.text.comparison import MEANINGS, SIGNS

INTRO = (
    "Run **B** is held against run **A**, the baseline, case by case. A verdict needs the whole 95 % interval outside the noise; "
    "times that were measured in different ways get none."
)
CHOOSE = (
    "**Choose two runs above**, A being the baseline: two of your own, or a document from elsewhere against one of yours. "
    "Or choose one run twice, and two of its variants."
)
SAME_RUN = "A and B are one run: choose one of its variants for each side."
NO_PAIRS = (
    "No case is in both runs: A has {a}, B has {b}. Choose runs of the same op and sizes, or one variant of each."
)
ALIKE = "The same device, driver, versions and method on both sides."
ONE_RUN = "Both sides are of one run: the same device, driver, versions and method."
EVERY, ALSO = "every variant, each with itself", "the same as on the other side"
L2_HELP = "Cold: the caches are flushed before each call. Warm: its data lie where the call itself leaves them."
RULE = """
- **Pairs**: the same case in both runs; with one variant chosen on each side, the same problem. The ratio is the time of B over
  that of A.
- **Two runs** share no rounds, so each side is resampled over its own blocks (bootstrap of the ratio of the medians, 95 %). The
  whole interval must clear the noise floor: the largest of 0.5 %, the A/A comparison that each run makes with its own baseline,
  and the largest difference of the cases with the **same code** in both.
- **Same code** means: same source, same compilers and driver, and the same kernels with the same grid, block, registers and
  shared memory. What differs there is what moved between the two runs (card, clock, place in memory), and no change of yours.
- **Two variants of one run** share rounds: the verdict is that of the page Bench, on the ratio in each round.
- **No verdict** where burst meets sustained, other input data, another timer or way of launching, a CPU meets a GPU, what tracing
  adds is unknown or taken off on one side only, or where one side has no correct time.
"""


def meaning_words(word: PairWord) -> str:
    """A verdict and what it means, as Markdown."""
    return f"{SIGNS[word]} **{word}**: {MEANINGS[word]}"
