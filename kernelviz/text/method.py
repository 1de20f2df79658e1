"""How numbers are measured, as Markdown, for the page Method and the offline page."""

from kernelviz.core import DeviceKind, Method
from kernelviz.metrics.quality import PartName, QualityLevel
from kernelviz.text.quality import format_level

COLD: dict[DeviceKind, str] = {
    "cuda": """
The main metric of each case is its **cold device time**: the time from the first start to the last end of the kernels of one
call. The device records both, and the L2 cache is flushed before each call. Launch cost, compilation and tuning are not included.

- One iteration is: restore the inputs that the call changes, fill the outputs with 0xFF, **flush the L2 by reading** twice its
  size, **call**, end marker. A flush that writes would leave dirty lines, whose eviction would slow down the call. Reads
  alone do not evict all lines that a call has loaded with the priority "evict last". So the flush first loads its own lines with
  that priority, which replace them, and then sets these to the normal priority. Runs from before 2026-11-30 had the reads alone.
- As many iterations as fit into about 0.25 ms, at most 12, are captured as one CUDA graph, a **block**. The block is replayed
  under the CUPTI tracer. The first kernel of the call is counted from the end of the flush.
- Calls that are short use up to 60 copies of their tensors (buffers) in rotation. With a single buffer, the time of a 4 µs
  kernel depends on its addresses and can differ by 2 %.
- The SM clock of each block is measured on the SMs. A block is measured again if its clock is more than 1 % below that of the
  first block.
""",
    "cpu": """
The main metric of each case is its **cold device time**: the time of one call by the host clock, with flushed caches. Compilation
and tuning are not included.

- One iteration is: restore the inputs that the call changes, fill the outputs with 0xFF, read eight times the size of the
  last-level cache, **call**.
- The time includes the Python call, which takes 0.3–2 µs. Below about 20 µs, it is a large part of the time.
- The number of threads is fixed and recorded.
""",
}
NOT_PICTURED: dict[DeviceKind, str] = {
    "cuda": "There is no timing diagram of this GPU yet. The selftest below records one.",
    "cpu": "There is no timing diagram of a CPU, because it needs the timestamps of a GPU.",
}
VERDICT = """
- All variants of a problem run in **rounds**, in a new random order in each round. The baseline runs twice in each round; the
  difference between its two series is the **noise floor**.
- Two variants are compared by the ratio of their times **within each round**, with a bootstrap over the rounds. Changes of clock
  or temperature between rounds therefore cancel.
- **▲ faster** or **▼ slower**: the whole 95 % interval of the ratio is beyond max(0.5 %, noise floor). **= same**:
  the whole interval is within it, and the noise floor is at most 2 %. **? unclear**: all other cases, with the reason.
  Between a time of graphs and one of calls in the stream, a difference of less than 0.15 µs gives no verdict.
- Under sustained load, one pass over the variants is one observation. The interval is Student's t over three passes, which is
  wider than an interval over blocks.
- Measuring stops when every comparison is decided and every interval is narrow enough, or at the time limit. No sample is
  dropped.
- The *timed* call is repeated for three fills of the inputs. Each output element is compared with a float64 reference. A wrong
  variant keeps its time, marked as wrong; it is excluded from rankings and speed-ups.
"""
ROOFS = """
- **Calibrate**, on the page Device, measures the roofs by the same method: bandwidth for five mixes of reads and writes and
  several sizes, from memory and from the L2; matrix products and multiply-adds in each precision; transfers; launches.
- A case is compared with the bandwidth of its own mix of reads and writes and its own number of bytes. A warm case that fits in
  the L2 is compared with the bandwidth of the L2.
- **Share of the roof** = shortest possible time / measured time. The shortest possible time (speed of light) is
  max(bytes / bandwidth, flop / rate). A share above 100 % is shown as it is: the call is faster than the kernel that measured the
  roof, or a part of its output is still in the L2.
- A time that is shorter than the **data sheet** allows is rejected as impossible. A device without a data sheet in kernelviz has
  no such check.
"""
REFUSED = """
A variant that does one of these things is marked as **wrong**, with this name. For each that is possible on the device, the
selftest runs a variant that does it, and checks that the result is rejected.

A variant runs in the same process as the measurement. If it has replaced functions of the clock or the checks, it is refused,
and the other variants are measured again in a new process. This finds only code that does not put them back: code that reads
the caller's variables, or writes results of its own, cannot be stopped there. On a GPU, a kernel that recognises its inputs by
their content, or that works in some calls only, is not found. So this list finds mistakes and simple tricks. It is no proof
against an attacker. The next section is about code of somebody else.
"""
UNTRUSTED = """
**Do not trust the variants** (`--untrusted`) is for code of somebody else. Each variant is measured in a process of its own. A
second process, the **judge**, runs none of them and is idle while the worker measures. Afterwards it fills inputs with new
random numbers, flushes the caches, and takes the time by its own clock until the outputs are in its memory, for 8 to 40 calls.
It compares the outputs with a reference that the worker never sees. A wrong output is wrong, whatever the worker says. The
shortest of the judge's times contains a launch and the signals between the processes:

- at most 10 % longer than the worker's time: the time is **confirmed**;
- longer by more than 0.3 ms and 15 % (on a CPU 100 %), in three measurements: the worker's time is **impossible**. On a GPU, the
  judge first measures with an honest process how much longer a call is by its clock; where one and a half times that is more
  than 0.3 ms, this is allowed, at most 1.2 ms;
- between these: **unverified clock**. The true time may be longer by up to that difference. Short calls are never confirmed.

Variants that were measured apart share no rounds, so they are compared like two runs, with twice the usual noise floor. The
judge does not find a call that takes longer than it says by less than these limits, work that a thread does while the judge
fills the inputs, or a program that attacks other processes. The judge is **no sandbox**: the code can do what you can do, so run
it in a container or on a machine that holds nothing else.
"""

PARTS: dict[PartName, str] = {
    "samples": "Number of timed calls, of blocks (a block is one replay of a CUDA graph), and of buffers: copies "
    "of the tensors at other addresses, used in rotation.",
    "interval": "Half the width of the 95 % interval of the time: the spread of the blocks (a bootstrap over ten or more), "
    "what differs between processes and buffers, the timer's resolution, and the noise of the subtracted tracing overhead.",
    "stability": "Only if the time has two levels: one after the other, or mixed. It was measured again, and the levels stayed",
    "caches": "Whether the caches (on a GPU: the L2) were flushed before each call (cold), or kept the data of the call before "
    "(warm).",
    "clock": "The SM clock of a GPU during the blocks, as a range if it changed by more than 1 %. "
    "Burst: short bursts of load. Sustained: back-to-back calls after a second of the same load, or longer if the run says so.",
    "throttle": "Why the driver reduced the clock during the measurement: none, power cap, thermal, …",
    "repeated": "Number of blocks that were measured again because the clock had dropped or a time was not stable.",
    "correct": "The largest error relative to the tolerance of the op, and the number of input fills that were checked.",
    "method": "The source of the timestamps, and how the call was launched. Stream launch: it, or a short "
    "call that is compared with it, cannot be captured as a graph. "
    "Events: this machine has no tracer, or tracing makes the call shorter. Of tracing subtracted: tracing adds this time to the "
    "call.",
    "others": "Other processes on the GPU during the measurement. Inside a container, the driver often does not report them.",
    "configuration": "For a variant with tunable parameters: their values, and whether they are defaults or come from a tuning.",
    "notes": "Everything else that was observed.",
}
"""The parts of the measurement quality in their order, and what each says."""
LEVEL_RULES: dict[QualityLevel, str] = {
    "good": "No problem of the measurement is known.",
    "note": "The time is valid within its interval; the caveat says what to know: a wide interval, a stream launch, timestamps "
    "not from CUPTI, a clock set by a user, a power cap that kept the clock steady or that sustained load reached, another note, "
    "or an unknown part (always on a CPU).",
    "suspect": "Unreliable: do not draw conclusions. The time may be wrong by more than its interval (two levels, slow blocks "
    "that moved it, a throttled or shared GPU, no interval), or the result is wrong or was not checked.",
}


def describe_level(level: QualityLevel) -> str:
    """The sign and name of a level, with its rule."""
    return f"**{format_level(level)}** {LEVEL_RULES[level]}"


def format_load(method: Method) -> str:
    """The load while measuring, if it is not the usual one of short bursts; else empty.

    >>> format_load(Method()), format_load(Method(clock="sustained")), format_load(Method(clock="sustained", load_s=10.0))
    ('', 'sustained load', 'sustained load, 10 s before each time')
    """
    if method.clock != "sustained":
        return ""
    return "sustained load" + (f", {method.load_s:g} s before each time" if isinstance(method.load_s, float) else "")
