"""How numbers are made, as Markdown: what the page Method and the offline page say, one place for each sentence."""

from __future__ import annotations

from kernelviz.core.run import DeviceKind
from kernelviz.metrics.quality import PartName, QualityLevel
from kernelviz.text.quality import format_level

COLD: dict[DeviceKind, str] = {
    "cuda": """
**Device cold** is the headline: from the first start to the last end of the call's own kernels, by the device's own stamps, with
the L2 flushed before. Launching, compiling and tuning are in none of it.

- One iteration: fill the outputs with 0xFF, restore what the call changes, **flush the L2 by reading** twice its size, **call**,
  end marker. A flush by writing would leave dirty lines, and the call would pay for their eviction.
- Up to 12 iterations (about 0.5 ms) are one CUDA graph, a **block**, replayed under the CUPTI tracer. The call's first kernel
  counts from where the flush ends.
- Short calls run at up to 60 places in memory in turn; at one place a 4 µs kernel may be 2 % off that figure.
- The SM clock of each block is counted by the SMs themselves. A block over 1 % under the first one's clock is taken again.
""",
    "cpu": """
**Device cold** is the headline: the host clock round one call, with the caches read out before it. Compiling and tuning are in
none of it.

- One iteration: fill the outputs with 0xFF, restore what the call changes, read eight times the last-level cache, **call**.
- The time includes one Python call of the launch, 0.3–2 µs: below about 20 µs it is that call you see.
- Threads are fixed and recorded.
""",
}
NOT_PICTURED: dict[DeviceKind, str] = {
    "cuda": "No measurement was pictured on this GPU yet. The selftest below takes a picture of one.",
    "cpu": "A timing diagram needs a GPU's own stamps; a processor has none, so nothing is pictured here.",
}
VERDICT = """
- All variants of a problem run in interleaved **rounds** in random order, the baseline twice. The baseline against itself is the
  live **noise floor**.
- A comparison is the ratio **inside each round**, bootstrapped over rounds: clock, temperature and neighbours cancel.
- **▲ faster** or **▼ slower**: the whole 95 % interval lies beyond max(0.5 %, noise floor). **= same**: it lies inside, and the
  floor is not above 2 %. **? unclear**: anything else, with the reason.
- Under sustained load a pass is one observation: intervals are Student's t over three passes, wider than over their blocks.
- Measuring stops when every comparison is decided and every interval is narrow, or at the budget. No sample is dropped.
- Right before fast: the *timed* call is made again over three fills and compared with a float64 reference, element by element.
  A wrong variant keeps its time, marked wrong: never fastest, no speed-up.
"""
ROOFS = """
- **Calibrate**, on the first page, measures them on this device by the same method: streams at five read:write mixes and several
  sizes, from memory and from the L2; matrix products and plain multiply-adds in each precision; transfers; launches.
- A case is held against the stream of its own read:write mix at its own bytes; a warm case that fits, against the L2's.
- **Share of the roof** = speed of light / measured time; speed of light = max(bytes / bandwidth, flop / rate). Above 100 % is
  shown as it is: the call beats the stream that set the roof, or the L2 still holds part of what it wrote.
- Faster than the **data sheet** allows is refused as impossible. A device that is not in our table has no data-sheet roof.
"""
REFUSED = """
A variant that does one of these is marked **wrong**, by this name. The selftest plants each and looks whether it is refused.
"""

PARTS: dict[PartName, str] = {
    "samples": "Calls timed, in how many blocks (a block is one replay), at how many places in memory.",
    "interval": "Half the 95 % interval of the time, bootstrapped over blocks. Below ten blocks none is given.",
    "L2": "Data flushed from the L2 before the call (cold), or left where the call itself leaves them (warm).",
    "clock": "The SM clock inside the blocks, from least to most where it moved by over 1 %. "
    "Burst: short bursts of load. Sustained: after a second of the same load.",
    "throttle": "Why the driver held the clock down meanwhile: none, power cap, thermal, …",
    "repeated": "Blocks taken again because their clock fell.",
    "correct": "The largest error against the float64 reference, as a share of what the op's bound allows; how many fills.",
    "method": "Where the stamps come from and how the call was launched. In stream: it cannot be captured as a graph. "
    "Events: no tracer here. Corrected: what tracing adds to the call was taken off.",
    "others": "Other processes on the GPU meanwhile. Inside a container the driver often does not say.",
    "configuration": "Of a variant with something to tune: what it was bound with, its default or what a tuning found.",
    "notes": "Whatever else was noticed.",
}
"""The parts of a trust line in their order, and what each says."""
LEVEL_RULES: dict[QualityLevel, str] = {
    "good": "Nothing speaks against the time.",
    "note": "The time holds; know this about it. Blocks repeated, call in a stream, stamps not CUPTI's, span corrected, clock "
    "set by somebody, power cap under sustained load, a note, or a part unknown (on a processor always).",
    "suspect": "Decide nothing by it. Throttled, slow clock kept, no interval, other processes on the GPU, not checked, wrong.",
}


def level_words(level: QualityLevel) -> str:
    """The sign and word of a level with its rule."""
    return f"**{format_level(level)}** {LEVEL_RULES[level]}"
