"""The sentences of the page Compare."""

from kernelviz.metrics.comparison import PairWord
from kernelviz.text.comparison import MEANINGS, SIGNS

INTRO = (
    "Each case of run **B** (a variant at one size) is compared with the same case of run **A**, the baseline. B is faster or "
    "slower only if the whole 95 % interval of the time ratio is beyond the measurement noise; times that were measured in "
    "different ways are not compared."
)
CHOOSE = (
    "**Choose two runs above.** A is the baseline and B is compared with it: two runs of this server, or a file from another "
    "machine and a run of yours. To compare two variants of one run, choose that run twice."
)
SAME_RUN = "A and B are the same run. Choose a different variant for each side, or another run for one of them."
NO_PAIRS = (
    "A and B have no case in common: A is {a}, B is {b}. Choose two runs of the same op with at least one common size, or one "
    "variant of each."
)
ALIKE = "None: both sides have the same device, driver, library versions and method."
ONE_RUN = "None: both sides are from one run, with one device, driver, library versions and method."
EVERY, ALSO = "every variant, each with itself", "same as on the other side"
RULE = """
- **Pairs**: the same case in both runs; if one variant is chosen on each side, all cases of the same problem. The ratio is the
  time of B divided by the time of A.
- **Two runs** were not measured in the same rounds, so each side is resampled over its own blocks (bootstrap of the ratio of the
  medians, 95 %). For a verdict, the whole interval must be beyond the noise floor. The threshold is the largest of 0.5 %, the
  A/A comparison that each run makes with its own baseline, and the largest change among the cases with the **same code**.
- **Same code** means: the same source, compilers and driver, and the same kernels with the same grid, block, registers and
  shared memory. If the time of such a case changes, the environment (card, clock, place in memory) changed, not the kernel.
- **Two variants of one run** were measured in the same rounds, so the verdict is that of the page Bench: the ratio in each round.
- **Not comparable**: burst against sustained load, different input data, a different timer or launch method, a CPU against a GPU,
  tracing overhead that is unknown or was subtracted on one side only, or no correct time on one side.
"""


def describe_verdict(verdict: PairWord) -> str:
    """A verdict and its meaning, as Markdown."""
    return f"{SIGNS[verdict]} **{verdict}**: {MEANINGS[verdict]}"
