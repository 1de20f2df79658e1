"""What differs between the machine code of two cases, in text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import assert_never

from kernelviz.core.code_changes import (
    AccessWidthChange,
    ArchitectureChange,
    AtomicsChange,
    BarriersChange,
    BusyMultiprocessorsChange,
    CodeChange,
    CodeChanges,
    CodeSide,
    CompilerChange,
    CopiesChange,
    CopyTechnique,
    Explains,
    InstructionsChange,
    KernelCountChange,
    LaunchChange,
    OccupancyChange,
    PassesChange,
    RankedChange,
    RegistersChange,
    Role,
    SectorsChange,
    SharedLayoutChange,
    SharedMemoryChange,
    SharedStagingChange,
    SpillsChange,
    StoresChange,
    StoreTechnique,
    TechniqueChange,
    TensorChange,
    TensorKind,
    TensorShapeChange,
    TrafficChange,
    WarpRolesChange,
    WavesChange,
)
from kernelviz.core.code_facts import NoFactsReason
from kernelviz.core.machine_code import OccupancyLimit
from kernelviz.core.units import counted, percent, significant, size_bytes
from kernelviz.metrics.code_changes import listed_changes
from kernelviz.text.machine_code import LIMIT_NAMES, TECHNIQUE_NAMES, format_kernel_name
from kernelviz.text.text import Text, join, sentence_case

MOST = 3
EXPLAINS_NAMES: dict[Explains, str] = {
    "can": "can be the reason",
    "neutral": "no reason by itself",
    "against": "favours the slower side",
}
EXPLAINS_SIGNS: dict[Explains, str] = {"can": "▸", "neutral": "·", "against": "◂"}
_MISSING: dict[NoFactsReason, str] = {
    "library": "a library: no machine code",
    "not_captured": "no machine code was captured",
    "no_machine_code": "code for a CPU",
    "no_cubin": "only source was captured, no machine code",
    "not_here": "its machine code is not on this machine",
    "no_tool": "unknown without nvdisasm",
    "too_large": "its machine code is larger than what is analysed",
    "unreadable": "its machine code cannot be read",
}
SIDE_NAMES: dict[CodeSide, str] = {"a": "A", "b": "B"}
_KINDS: dict[TensorKind | None, str] = {
    None: "no tensor cores",
    "mma_sync": "warp-level MMA",
    "wgmma": "wgmma",
    "tcgen05": "tcgen05",
}
_COPIES: dict[CopyTechnique, str] = {"cp_async": "cp.async", "bulk_copy": "bulk copies", "tma": "TMA"}


def describe_changes(changes: CodeChanges, most: int = MOST) -> Text:
    """The first changes in one sentence, the likeliest cause of the measured difference first. If one side is faster and no
    change can be the reason, it says so first.

    >>> from kernelviz.core.code_changes import RankedChange
    >>> wider = AccessWidthChange(space="global", accesses=("load",), a_bytes=4, b_bytes=16, favours="b")
    >>> more = RegistersChange(a=32, b=64)
    >>> listed = (RankedChange(change=wider, explains="can"), RankedChange(change=more))
    >>> print(describe_changes(CodeChanges(changes=listed, faster="b", a_kernel="k", b_kernel="k")))
    16-byte loads replaced 4-byte loads; registers 32 → 64
    >>> print(describe_changes(CodeChanges(changes=listed[1:], faster="a", a_kernel="k", b_kernel="k")))
    The machine code does not show why A is faster; what differs: registers 32 → 64
    >>> print(describe_changes(CodeChanges(a_missing="library", b_kernel="k")))
    A is a library: no machine code
    """
    if changes.same_code:
        return _same_code(changes)
    parts = [str(describe_ranked(one)) for one in listed_changes(changes)[:most]]
    more = len(changes.changes) - len(parts)
    listed = join("; ", [*parts, f"{more} more" if more else ""])
    missing = join("; ", describe_missing_sides(changes))
    if not changes.known:
        return join("; ", [listed, missing])
    if changes.faster is not None and changes.cause is None:
        unknown = f"The machine code does not show why {SIDE_NAMES[changes.faster]} is faster"
        return join("; ", [f"{unknown}; what differs: {listed}" if parts else unknown, missing])
    return join("; ", [listed if parts else "None of the compared facts of the machine code differs", missing])


def _same_code(changes: CodeChanges) -> Text:
    parts = [describe_change(one.change) for one in changes.changes]
    return join("; ", ["Both sides run the same machine code", *parts])


def describe_missing_sides(changes: CodeChanges) -> Iterator[Text]:
    """For each side whose machine code is missing, why; also where that of its longest kernel is."""
    sides = {
        "A": (changes.a_missing, changes.a_library_kernel),
        "B": (changes.b_missing, changes.b_library_kernel),
    }
    for side, (reason, kernel) in sides.items():
        if kernel is not None:
            yield Text(f"the longest kernel of {side} ({format_kernel_name(kernel)}) is a library's: no machine code")
        elif reason is not None:
            verb = " is" if reason in ("library", "no_machine_code") else ":"
            yield Text(f"{side}{verb} {_MISSING[reason]}")


def describe_cause(changes: CodeChanges) -> Text:
    """One sentence about the likeliest cause of the measured difference.

    >>> from kernelviz.core.code_changes import RankedChange
    >>> fewer = SpillsChange(a=590, b=0, a_of_iteration=194, b_of_iteration=0, favours="b")
    >>> one = RankedChange(change=fewer, explains="can")
    >>> print(describe_cause(CodeChanges(changes=(one,), faster="b", a_kernel="k", b_kernel="k")))
    The likeliest reason why B is faster: accesses to local memory (spills) 590 → 0, in an iteration 194 → 0.
    >>> lost = RankedChange(change=KernelCountChange(a=1, b=2, favours="a"), explains="can")
    >>> print(describe_cause(CodeChanges(changes=(lost,), faster="a", a_kernel="k", b_kernel="k")))
    The likeliest reason why A is faster: from A to B, kernels per call 1 → 2.
    """
    cause = changes.cause
    if changes.same_code:
        return _same_code(changes) + "."
    if cause is not None and changes.faster is not None:
        # As the list of all changes, it is told from A to B, whichever side is faster.
        direction = "from A to B, " if changes.faster == "a" else ""
        return Text(
            f"The likeliest reason why {SIDE_NAMES[changes.faster]} is faster: {direction}{describe_change(cause)}."
        )
    if not changes.known:
        return sentence_case(join("; ", describe_missing_sides(changes)) + ".")
    if changes.faster is None:
        return Text("Neither side is faster beyond the noise, so there is no difference to explain.")
    return Text(f"The machine code does not show why {SIDE_NAMES[changes.faster]} is faster.")


def describe_ranked(one: RankedChange) -> Text:
    """A change from A to B; of one that favours the slower side, that it should help that side.

    >>> print(describe_ranked(RankedChange(change=RegistersChange(a=32, b=64))))
    registers 32 → 64
    >>> newer = CopiesChange(a=("cp_async",), b=("tma",), favours="b")
    >>> print(describe_ranked(RankedChange(change=newer, explains="against")))
    TMA replaced cp.async, which should help B, the slower side
    """
    side = one.change.favours if one.explains == "against" else None
    against = "" if side is None else f", which should help {SIDE_NAMES[side]}, the slower side"
    return Text(f"{describe_change(one.change)}{against}")


def describe_change(change: CodeChange) -> Text:
    """A change from A to B.

    >>> print(describe_change(OccupancyChange(a_fraction=0.75, b_fraction=0.5, b_limited_by=("registers",))))
    occupancy 75 → 50 % (limit: registers)
    >>> print(describe_change(SharedLayoutChange(a_bytes=4096, b_bytes=4224)))
    shared memory 4,096 → 4,224 bytes per block with the same accesses, as padded rows have
    >>> print(describe_change(WarpRolesChange(a=(Role(does="multiplies"),), b=(Role(does="multiplies", registers=232),
    ...     Role(does="copies")))))
    warps are specialised: 1 role multiplies (232 registers, by setmaxnreg), 1 role copies
    """
    text = _describe(change)
    return Text(f"{text} (in {format_kernel_name(change.kernel)})") if change.kernel else Text(text)


def _describe(change: CodeChange) -> str:
    match change:
        case ArchitectureChange() | CompilerChange():
            return f"{'architecture' if isinstance(change, ArchitectureChange) else 'compiler'} {change.a} → {change.b}"
        case SectorsChange():
            return f"bytes of touched sectors {size_bytes(change.a_bytes)} → {size_bytes(change.b_bytes)} (counters)"
        case TrafficChange():
            return f"bytes from and to memory {size_bytes(change.a_bytes)} → {size_bytes(change.b_bytes)} (counters)"
        case SpillsChange():
            return _spills(change)
        case AtomicsChange():
            return _atomics(change)
        case KernelCountChange():
            return f"kernels per call {change.a} → {change.b}"
        case BusyMultiprocessorsChange():
            return f"multiprocessors with a block {format_percents(change.a_fraction, change.b_fraction)}"
        case TensorChange():
            return _replaced(_KINDS[change.b], _KINDS[change.a], gained=change.a is None, lost=change.b is None)
        case TensorShapeChange():
            return f"{_KINDS[change.tensor]} {_shape(change.a)} → {_shape(change.b)}"
        case PassesChange():
            return f"passes over the data in global memory {change.a} → {change.b}"
        case SharedStagingChange():
            return _staging(change)
        case SharedLayoutChange():
            sizes = _bytes("shared memory", change.a_bytes, change.b_bytes)
            return f"{sizes} per block with the same accesses, as padded rows have"
        case WarpRolesChange():
            return _roles(change)
        case CopiesChange():
            new, old = (" and ".join(_COPIES[c] for c in side) for side in (change.b, change.a))
            return _replaced(new, old, gained=not change.a, lost=not change.b)
        case TechniqueChange():
            return f"{TECHNIQUE_NAMES[change.technique]} {'gone' if change.only == 'a' else 'used'}"
        case AccessWidthChange():
            return _widths(change)
        case StoresChange():
            new, old = _stores(change.b, change.b_bytes), _stores(change.a, change.a_bytes)
            return f"{new} replaced {old}"
        case InstructionsChange():
            basis = "1,024 multiply-adds of a warp" if change.basis == "multiply_add" else "byte in global memory"
            return f"instructions per {basis} {significant(change.a, 3)} → {significant(change.b, 3)}"
        case BarriersChange():
            return f"block barriers of an iteration {change.a} → {change.b}"
        case OccupancyChange():
            return _occupancy(change)
        case WavesChange():
            return (
                f"slots for blocks in use, over all waves {format_percents(change.a.utilisation, change.b.utilisation)}"
            )
        case RegistersChange():
            return f"registers {change.a} → {change.b}"
        case SharedMemoryChange():
            return _shared(change)
        case LaunchChange():
            return _launch(change)
        case _:
            assert_never(change)


def _replaced(new: str, old: str, *, gained: bool, lost: bool) -> str:
    return f"{new} used" if gained else f"{old} gone" if lost else f"{new} replaced {old}"


def _spills(change: SpillsChange) -> str:
    inside = ""
    if change.a_of_iteration is not None and change.b_of_iteration is not None:
        if change.a_of_iteration != change.b_of_iteration:
            inside = f", in an iteration {change.a_of_iteration:,} → {change.b_of_iteration:,}"
        elif change.a_of_iteration == 0:
            inside = ", none of them in an iteration of the main loop"
    return f"accesses to local memory (spills) {change.a:,} → {change.b:,}{inside}"


def _atomics(change: AtomicsChange) -> str:
    if change.a_global and not change.b_global and change.b_shared:
        return "atomics on shared memory replaced those on global memory"
    if change.b_global and not change.a_global and change.a_shared:
        return "atomics on global memory replaced those on shared memory"
    sides = {"global": (change.a_global, change.b_global), "shared": (change.a_shared, change.b_shared)}
    return ", ".join(f"atomics on {space} memory {a} → {b}" for space, (a, b) in sides.items() if a != b)


def _staging(change: SharedStagingChange) -> str:
    what = f"{change.bytes:,} bytes per block"
    if change.staged == "b":
        return f"data passes through shared memory ({what})"
    return f"data no longer passes through shared memory ({what} before)"


def _roles(change: WarpRolesChange) -> str:
    several = [len(side) > 1 for side in (change.a, change.b)]
    if all(several):
        return f"warp roles: {_role_list(change.a)} → {_role_list(change.b)}"
    if several[1]:
        return f"warps are specialised: {_role_list(change.b)}"
    return f"warps are no longer specialised (before: {_role_list(change.a)})"


def _role_list(roles: Sequence[Role]) -> str:
    counts: dict[Role, int] = {}
    for role in roles:
        counts[role] = counts.get(role, 0) + 1
    return ", ".join(_role(role, count) for role, count in counts.items())


def _role(role: Role, count: int) -> str:
    verb = {"multiplies": "multiply", "copies": "copy", "other": "do other work"}[role.does]
    does = ("does other work" if role.does == "other" else role.does) if count == 1 else verb
    registers = f" ({role.registers} registers{' each' if count > 1 else ''}, by setmaxnreg)" if role.registers else ""
    return f"{counted(count, 'role')} {does}{registers}"


def _widths(change: AccessWidthChange) -> str:
    shared = "shared " if change.space == "shared" else ""
    kinds = " and ".join(f"{kind}s" for kind in change.accesses)
    what = f"{shared}{kinds}"
    where = " (not in the main loop)" if change.outside_main else ""
    old = "ones" if len(change.accesses) > 1 else what
    return f"{change.b_bytes}-byte {what} replaced {change.a_bytes}-byte {old}{where}"


def _stores(technique: StoreTechnique | None, width_bytes: int | None) -> str:
    if technique is not None:
        return f"stores by {_COPIES[technique]}"
    return "stores by threads" if width_bytes is None else f"{width_bytes}-byte stores by threads"


def _occupancy(change: OccupancyChange) -> str:
    lower = change.b_limited_by if change.b_fraction < change.a_fraction else ()
    limit = f" (limit: {_limits(lower)})" if lower else ""
    return f"occupancy {format_percents(change.a_fraction, change.b_fraction)}{limit}"


def _limits(limits: Sequence[OccupancyLimit]) -> str:
    return " and ".join(LIMIT_NAMES[name] for name in limits)


def format_percents(a: float, b: float) -> str:
    """Two fractions with one unit; without decimals if both are whole."""
    whole = all(abs(round(value * 100) - value * 100) < 0.05 for value in (a, b))
    first, second = (f"{value * 100:.0f}" if whole else percent(value).removesuffix(" %") for value in (a, b))
    return f"{first} → {second} %"


def _shared(change: SharedMemoryChange) -> str:
    kinds = {
        "static": (change.a_static, change.b_static),
        "dynamic": (change.a_bytes - change.a_static, change.b_bytes - change.b_static),
    }
    differ = [(f"{kind} shared memory", a, b) for kind, (a, b) in kinds.items() if a != b]
    both = ("shared memory", change.a_bytes, change.b_bytes)
    return f"{_bytes(*(differ[0] if len(differ) == 1 else both))} per block"


def _bytes(name: str, a: int, b: int) -> str:
    return f"{name} {a:,} → {b:,} bytes"


def _launch(change: LaunchChange) -> str:
    parts = []
    if change.a_blocks != change.b_blocks:
        parts.append(f"blocks {_number(change.a_blocks)} → {_number(change.b_blocks)}")
    if change.a_threads != change.b_threads:
        parts.append(f"threads per block {_number(change.a_threads)} → {_number(change.b_threads)}")
    return ", ".join(parts)


def _number(value: int | None) -> str:
    return "unknown" if value is None else f"{value:,}"


def _shape(shape: tuple[int, int, int]) -> str:
    return "×".join(map(str, shape))
