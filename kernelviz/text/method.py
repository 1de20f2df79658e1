"""How numbers are measured, as Markdown, for the page Method and the offline page."""

from kernelviz.core import DeviceKind
from kernelviz.metrics.quality import PartName, QualityLevel
from kernelviz.text.quality import format_level

COLD: dict[DeviceKind, str] = {
    "cuda": """
The **cold device time** is the headline of each case: the time from the first start to the last end of the kernels of one call,
recorded by the device, after the L2 cache has been flushed. It contains no launch, compilation or tuning.

- One iteration is: fill the outputs with 0xFF, restore what the call changes, **flush the L2 by reading** twice its size,
  **call**, end marker. A flush by writing would leave dirty lines, and their eviction would slow down the call.
- Up to 12 iterations (about 0.5 ms) form one CUDA graph, a **block**, which is replayed under the CUPTI tracer. The first kernel
  of the call is counted from the end of the flush.
- Short calls use up to 60 places in memory in rotation. At a single place, a 4 µs kernel can differ by 2 % from this time.
- The SM clock of each block is measured on the SMs. A block whose clock is over 1 % below that of the first
  block is measured again.
""",
    "cpu": """
The **cold device time** is the headline of each case: the time of one call by the host clock, after the caches have been emptied.
It contains no compilation or tuning.

- One iteration is: fill the outputs with 0xFF, restore what the call changes, read eight times the last-level cache, **call**.
- The time includes one Python call of the launch, 0.3–2 µs. Below about 20 µs, this call dominates.
- The number of threads is fixed and recorded.
""",
}
NOT_PICTURED: dict[DeviceKind, str] = {
    "cuda": "No timeline of a measurement on this GPU is stored yet. The selftest below records one.",
    "cpu": "A timeline needs time stamps of a GPU. There is none for a CPU.",
}
VERDICT = """
- All variants of a problem run in interleaved **rounds** in random order, the baseline twice. The difference of the baseline from
  itself is the **noise floor**.
- A comparison uses the ratio **inside each round**, bootstrapped over rounds, so that changes of clock and temperature between
  rounds cancel.
- **▲ faster** or **▼ slower**: the whole 95 % interval is outside of max(0.5 %, noise floor). **= same**: it is inside, and the
  floor is not above 2 %. **? unclear**: all other cases, with the reason.
- Under sustained load, one pass is one observation: intervals are Student's t over three passes, which is wider than over blocks.
- Measuring stops when every comparison is decided and every interval is narrow, or at the budget. No sample is dropped.
- The *timed* call is repeated for three fills of the inputs and compared with a float64 reference, element by element. A wrong
  variant keeps its time, which is marked as wrong; it is never the fastest and has no speed-up.
"""
ROOFS = """
- **Calibrate**, on the Bench page, measures the roofs on this device by the same method: streams at five read:write mixes and
  several sizes, from memory and from the L2; matrix products and multiply-adds in each precision; transfers; launches.
- A case is compared with the stream of its own read:write mix and number of bytes, and a warm case that fits into the L2 with the
  stream of the L2.
- **Share of the roof** = speed of light / measured time. Speed of light = max(bytes / bandwidth, flop / rate), in seconds. A
  share above 100 % is shown: the call is faster than the stream of the roof, or part of its output is still in the L2.
- A time that is shorter than the **data sheet** allows is refused as impossible. A device that is not in our table has no
  data-sheet roof.
"""
REFUSED = """
A variant that does one of these things is marked as **wrong**, with this name. The selftest runs a variant for each of them and
checks that it is refused.
"""

PARTS: dict[PartName, str] = {
    "samples": "Number of timed calls, of blocks (a block is one replay of a graph), and of places in memory.",
    "interval": "Half of the 95 % interval of the time, bootstrapped over blocks. With fewer than ten blocks, there is none.",
    "L2": "Whether the data was flushed from the L2 before the call (cold), or left where the call leaves it (warm).",
    "clock": "The SM clock during the blocks, as a range if it changed by over 1 %. "
    "Burst: short bursts of load. Sustained: after a second of the same load.",
    "throttle": "Why the driver reduced the clock during the measurement: none, power cap, thermal, …",
    "repeated": "Number of blocks that were measured again because their clock had fallen.",
    "correct": "The largest error from the float64 reference, as a share of the bound of the op, and the number of fills.",
    "method": "The source of the time stamps, and how the call was launched. In stream: it cannot be captured as a graph. "
    "Events: there is no tracer here. Corrected: the time that tracing adds to the call was subtracted.",
    "others": "Other processes on the GPU during the measurement. Inside a container, the driver often does not report them.",
    "configuration": "For a variant with parameters to tune: their values, from its defaults or from a tuning.",
    "notes": "Everything else that was observed.",
}
"""The parts of the measurement quality in their order, and what each says."""
LEVEL_RULES: dict[QualityLevel, str] = {
    "good": "There is no objection to the time.",
    "note": "The time is valid, with a remark: repeated blocks, call in a stream, time stamps not from CUPTI, corrected span, "
    "clock set by a user, power cap under sustained load, a note, or an unknown part (always on a CPU).",
    "suspect": "Do not base decisions on this time: throttled, slow clock, no interval, other processes on the GPU, not checked, "
    "or wrong.",
}


def describe_level(level: QualityLevel) -> str:
    """The sign and name of a level, with its rule."""
    return f"**{format_level(level)}** {LEVEL_RULES[level]}"
