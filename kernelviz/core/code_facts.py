"""What the machine code of a case shows: its kernels with the launch that was measured, and the techniques of its variant."""

from __future__ import annotations

from typing import Literal

import msgspec

from kernelviz.core.machine_code import KernelFacts, Occupancy, Technique, WarpRole, Waves
from kernelviz.core.problem import Struct
from kernelviz.core.result import Result

NoFactsReason = Literal[
    "library", "not_captured", "no_machine_code", "no_cubin", "not_here", "no_tool", "too_large", "unreadable"
]
"""Why a case has no facts, or not those of all its kernels: its kernels are part of a library; no code was captured when it was
measured; it was compiled for a CPU; only source was captured of a case of a GPU, as where torch.compile calls a library; the
cubin is not on this machine; nvdisasm is not installed; the cubin is larger than what is analysed; or nvdisasm cannot read it."""
ProofStatus = Literal["proven", "missing", "undeclared", "observed"]
"""Of a technique: declared by the variant and in the machine code; declared, but not there; there, but not declared; there, and
it is not known what the variant declared, because its code is another one today."""


class CubinFacts(Struct, frozen=True, kw_only=True):
    """The facts of all kernels of a cubin, or why there are none. `message`: the tool's or the file's error, with its remedy."""

    kernels: tuple[KernelFacts, ...] = ()
    reason: NoFactsReason | None = None
    message: str = ""


class Proof(Struct, frozen=True, kw_only=True):
    """Whether the machine code shows a technique."""

    technique: Technique
    status: ProofStatus


class KernelOfCase(Struct, frozen=True, kw_only=True):
    """A kernel of a case, and how it was launched.

    `digest`: of its cubin. `grid` in blocks, `threads` of a block. `shared_bytes` of a block, static and dynamic together,
    without what the system reserves. `occupancy` is None where threads or shared memory are not known. `waves` is None where the
    grid is not known, and for clusters, because their blocks have to fit on neighbouring multiprocessors.
    """

    facts: KernelFacts
    digest: str
    grid: tuple[int, int, int] | None = None
    threads: int | None = None
    shared_bytes: int | None = None
    occupancy: Occupancy | None = None
    waves: Waves | None = None

    @property
    def role(self) -> WarpRole:
        """The warp role with the most tensor core instructions in an iteration, else the one with the most instructions."""
        return max(self.facts.roles, key=lambda r: (r.work.classes.get("tensor", 0), r.work.executable))


class CaseFacts(Struct, frozen=True, kw_only=True):
    """The facts of a case. `declared`: the techniques that its variant declares for this architecture; None if the variant is not
    in the catalogue, or if its code has changed since the case was measured. `observed`: what its machine code shows. `reason`
    says why facts are missing; `kernels` then holds those that could be read. `multiprocessors`: of the device."""

    result: Result
    multiprocessors: int | None = None
    kernels: tuple[KernelOfCase, ...] = ()
    declared: frozenset[Technique] | None = None
    observed: frozenset[Technique] = frozenset()
    reason: NoFactsReason | None = None
    message: str = ""

    @property
    def proofs(self) -> tuple[Proof, ...]:
        """The techniques that are declared or in the machine code, the declared ones first. A declared one is not called missing
        where some of the machine code could not be read."""
        declared = self.declared or frozenset()
        absent = frozenset() if self.reason or not self.kernels else declared - self.observed
        by_status: dict[ProofStatus, frozenset[Technique]] = {
            "proven": declared & self.observed,
            "missing": absent,
            "undeclared" if self.declared is not None else "observed": self.observed - declared,
        }
        return tuple(
            Proof(technique=technique, status=status)
            for status, techniques in by_status.items()
            for technique in sorted(techniques)
        )


def record(case: CaseFacts) -> list[dict[str, object]]:
    """Each kernel of a case with its launch, for JSON; a case without facts as its reason. An unknown value is None."""
    about = {"problem": case.result.problem.key, "variant": case.result.variant}
    techniques = {
        "declared": None if case.declared is None else sorted(case.declared),
        "observed": sorted(case.observed),
    }
    kernels = [
        {**msgspec.to_builtins(kernel.facts), **about, **techniques, **msgspec.to_builtins(kernel)}
        for kernel in case.kernels
    ]
    for kernel in kernels:
        del kernel["facts"]
    missing = [{**about, **techniques, "reason": case.reason, "message": case.message}] if case.reason else []
    return [*kernels, *missing]
