"""Which techniques the machine code of a kernel shows, and which ones an architecture can show."""

from __future__ import annotations

import re
from collections.abc import Collection

from kernelviz.core.machine_code import KernelFacts, Technique

_FIRST_ARCHITECTURE: dict[Technique, int] = {
    "cp_async": 80,
    "bulk_copy": 90,
    "tma": 90,
    "multicast": 90,
    "cluster": 90,
    "warp_specialised": 90,
}
"""PTX ISA, "Target ISA Notes" of the instructions; warps are specialised with mbarriers and setmaxnreg."""
_TENSOR: tuple[tuple[Technique, tuple[int, ...]], ...] = (("tcgen05", (100, 103)), ("wgmma", (90,)), ("mma_sync", ()))
"""Tensor core instructions, the newest first, with the architectures that have them; mma.sync is in all from sm_80 on."""


def techniques_of(kernel: KernelFacts) -> frozenset[Technique]:
    """The techniques that a kernel shows, in its whole code."""
    whole = kernel.whole
    techniques: set[Technique] = set()
    if any(a.space in ("global", "generic") and a.width_bytes >= 16 for a in whole.accesses):
        techniques.add("vec16")
    for copy in whole.copies:
        if copy.kind == "cp_async":
            techniques.add("cp_async")
        elif copy.kind.startswith("bulk"):
            techniques.add("bulk_copy")
        else:
            techniques.add("tma")
        if copy.multicast:
            techniques.add("multicast")
    if whole.barriers.get("cluster"):
        techniques.add("cluster")
    for tensor in whole.tensor:
        mnemonic = tensor.opcode.partition(".")[0]
        techniques.add(
            "tcgen05" if mnemonic.startswith("UTC") else "wgmma" if mnemonic.endswith("GMMA") else "mma_sync"
        )
    if len(kernel.roles) > 1:
        techniques.add("warp_specialised")
    return frozenset(techniques)


def expected_on(declared: Collection[Technique], architecture: str) -> frozenset[Technique]:
    """The declared techniques that an architecture has. Of several kinds of tensor core instructions, the newest that it has.

    >>> declared = ("cp_async", "mma_sync", "wgmma", "tcgen05")
    >>> [sorted(expected_on(declared, arch)) for arch in ("sm_80", "sm_90", "sm_100", "sm_120")]
    [['cp_async', 'mma_sync'], ['cp_async', 'wgmma'], ['cp_async', 'tcgen05'], ['cp_async', 'mma_sync']]
    """
    match = re.match(r"sm_(\d+)", architecture)
    number = int(match[1]) if match else 0
    expected = {t for t in declared if t not in dict(_TENSOR) and number >= _FIRST_ARCHITECTURE.get(t, 0)}
    newest = next((t for t, only in _TENSOR if t in declared and (not only or number in only)), None)
    return frozenset(expected | {newest}) if newest else frozenset(expected)
