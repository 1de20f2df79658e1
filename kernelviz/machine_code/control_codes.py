"""Decode the control codes in the upper bits of a 128-bit instruction.

Layout of bits 105 to 125, the same from Volta to Hopper: stall count (4 bits), yield (1), write barrier (3), read barrier (3),
wait mask (6), reuse flags (4). A cleared yield bit makes the scheduler prefer another warp. Barrier 7 means none. Source: Jia et
al., "Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking" (2018), chapter 2. The layout was compared with
instructions of sm_80 and sm_90 that were decoded by hand; for other architectures nothing is decoded.
"""

from kernelviz.core.machine_code import ControlCodes

VERIFIED = frozenset({"sm_80", "sm_90", "sm_90a"})
"""Architectures of which decoded instructions were checked by hand."""
_FIRST_BIT = 105
_NO_BARRIER = 7


def control_codes(encoding: int, architecture: str) -> ControlCodes | None:
    """The control codes of a 128-bit instruction; None for an architecture whose layout is not verified.

    >>> # S2R R11, SR_CTAID.X of sm_80: it sets barrier 0 when R11 is written.
    >>> codes = control_codes(0x000E240000002500_00000000000B7919, "sm_80")
    >>> codes.stall_cycles, codes.yields, codes.write_barrier, codes.read_barrier, codes.wait_barriers
    (2, False, 0, None, ())
    """
    if architecture not in VERIFIED:
        return None
    bits = encoding >> _FIRST_BIT
    write_barrier, read_barrier = bits >> 5 & 7, bits >> 8 & 7
    return ControlCodes(
        stall_cycles=bits & 15,
        yields=not bits >> 4 & 1,
        write_barrier=None if write_barrier == _NO_BARRIER else write_barrier,
        read_barrier=None if read_barrier == _NO_BARRIER else read_barrier,
        wait_barriers=tuple(i for i in range(6) if bits >> 11 + i & 1),
        reused_operands=tuple(i for i in range(4) if bits >> 17 + i & 1),
    )
