"""How a change of machine code can make a kernel faster, in one sentence for each kind of change."""

from collections.abc import Mapping
from types import MappingProxyType

from kernelviz.core.code_changes import (
    AccessWidthChange,
    AtomicsChange,
    BarriersChange,
    BusyMultiprocessorsChange,
    CodeChange,
    CopiesChange,
    InstructionsChange,
    KernelCountChange,
    OccupancyChange,
    PassesChange,
    SectorsChange,
    SharedLayoutChange,
    SharedStagingChange,
    SpillsChange,
    StoresChange,
    TechniqueChange,
    TensorChange,
    TensorShapeChange,
    TrafficChange,
    WarpRolesChange,
    WavesChange,
)
from kernelviz.text.text import Text

_MECHANISMS: Mapping[type, str] = MappingProxyType(
    {
        SectorsChange: "If the threads of a warp access neighbouring addresses, fewer sectors move for the same elements.",
        TrafficChange: "Fewer bytes between L2 and device memory take less of its bandwidth.",
        SpillsChange: "Registers need no access. Local memory lies in L1, L2 and device memory.",
        AtomicsChange: "L2 reads, adds and writes for each atomic on global memory, and does those on one address in turn.",
        KernelCountChange: "Each kernel less saves a launch, and a result that goes to the next kernel through memory.",
        BusyMultiprocessorsChange: "With fewer blocks than multiprocessors, the others have nothing to do.",
        TensorChange: "A newer tensor core instruction multiplies more per cycle, and wgmma runs in the background.",
        PassesChange: "Data that stays on chip is not read from memory or L2 again.",
        SharedStagingChange: "Threads can load in one order and store in another, or use data again, without more accesses to "
        "global memory.",
        SharedLayoutChange: "Padded rows put the elements of a column into different banks, which a warp accesses at once.",
        WarpRolesChange: "Some warps copy while others multiply, so that the tensor cores wait less for data.",
        CopiesChange: "Copies in the background need no registers for data on the way. TMA copies a tile by one instruction.",
        TechniqueChange: "Blocks of a cluster share data, so that one copy can serve several blocks.",
        AccessWidthChange: "Wider accesses keep more bytes in flight with the same number of warps, by fewer instructions.",
        StoresChange: "Copies store a tile from shared memory in the background, by few instructions and whole lines.",
        TensorShapeChange: "A larger instruction does more multiply-adds for each operand that it reads.",
        InstructionsChange: "The schedulers have less to issue for the same work.",
        BarriersChange: "The warps of a block wait for each other less often.",
        OccupancyChange: "More warps have more loads in flight, which hides the latency of memory.",
        WavesChange: "Fewer slots for blocks are idle while the last blocks run.",
    }
)


def describe_mechanism(change: CodeChange) -> Text | None:
    """How such a change can make the side faster that it favours; None for a change that is no reason by itself.

    >>> print(describe_mechanism(PassesChange(a=2, b=1, favours="b")))
    Data that stays on chip is not read from memory or L2 again.
    >>> print(describe_mechanism(PassesChange(a=2, b=1)))
    None
    """
    sentence = _MECHANISMS.get(type(change)) if change.favours is not None else None
    return None if sentence is None else Text(sentence)
