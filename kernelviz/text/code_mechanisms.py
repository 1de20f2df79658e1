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
    CopyTechnique,
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
    TensorKind,
    TensorShapeChange,
    TrafficChange,
    WarpRolesChange,
    WavesChange,
)
from kernelviz.text.code_changes import SIDE_NAMES
from kernelviz.text.text import Text

_MECHANISMS: Mapping[type, str] = MappingProxyType(
    {
        SectorsChange: "If the threads of a warp access neighbouring addresses, fewer sectors move for the same elements.",
        TrafficChange: "Fewer bytes between L2 and device memory take less of its bandwidth.",
        SpillsChange: "Registers need no access. Local memory lies in L1, L2 and device memory.",
        AtomicsChange: "L2 reads, adds and writes for each atomic on global memory, and does those on one address in turn.",
        KernelCountChange: "Each kernel less saves a launch, and a result that goes to the next kernel through memory.",
        BusyMultiprocessorsChange: "With fewer blocks than multiprocessors, the others have nothing to do.",
        PassesChange: "Data that stays on chip is not read from memory or L2 again.",
        SharedStagingChange: "Threads can load in one order and store in another, or use data again, without more accesses to "
        "global memory.",
        SharedLayoutChange: "Padded rows put the elements of a column into different banks, which a warp accesses at once.",
        WarpRolesChange: "Some warps copy while others multiply, so that the tensor cores wait less for data.",
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
_FIRST_TENSOR = "Tensor cores multiply tiles by one instruction of a warp, in place of one multiply-add of each thread."
_NEWER_TENSOR: Mapping[TensorKind | None, str] = MappingProxyType(
    {
        "wgmma": "wgmma multiplies larger tiles, reads them from shared memory, and runs in the background.",
        "tcgen05": "tcgen05 multiplies larger tiles, keeps the sums in tensor memory, and runs in the background.",
    }
)
_COPIES: Mapping[CopyTechnique, str] = MappingProxyType(
    {
        "tma": "TMA copies a tile by one instruction of one thread, in the background and without registers for data on the way.",
        "bulk_copy": "One instruction copies many bytes in the background, without registers for data on the way.",
        "cp_async": "Copies in the background need no registers for data on the way, and the warps compute meanwhile.",
    }
)
_NEWEST_FIRST: tuple[CopyTechnique, ...] = ("tma", "bulk_copy", "cp_async")


def describe_mechanism(change: CodeChange) -> Text | None:
    """How such a change can make the side faster that it favours; None for a change that is no reason by itself.

    >>> print(describe_mechanism(PassesChange(a=2, b=1, favours="b")))
    Data that stays on chip is not read from memory or L2 again.
    >>> print(describe_mechanism(PassesChange(a=2, b=1)))
    None
    >>> print(describe_mechanism(CopiesChange(a=(), b=("cp_async",), favours="b")))
    Copies in the background need no registers for data on the way, and the warps compute meanwhile.
    """
    if change.favours is None:
        return None
    match change:
        case TensorChange():
            new, old = (change.a, change.b) if change.favours == "a" else (change.b, change.a)
            sentence = _FIRST_TENSOR if old is None else _NEWER_TENSOR.get(new)
        case CopiesChange():
            new_copies = change.a if change.favours == "a" else change.b
            sentence = next((_COPIES[kind] for kind in _NEWEST_FIRST if kind in new_copies), None)
        case _:
            sentence = _MECHANISMS.get(type(change))
    return None if sentence is None else Text(sentence)


def describe_favour(change: CodeChange) -> Text | None:
    """`describe_mechanism`, and the side that it is about, for a table in which some changes favour A and others B.

    >>> print(describe_favour(BarriersChange(a=2, b=6, favours="a")))
    In favour of A: The warps of a block wait for each other less often.
    """
    mechanism = describe_mechanism(change)
    return (
        None
        if mechanism is None or change.favours is None
        else Text(f"In favour of {SIDE_NAMES[change.favours]}: {mechanism}")
    )
