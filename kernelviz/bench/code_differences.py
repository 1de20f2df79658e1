"""Use case: how the machine code of the two sides of a comparison differs, case by case."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from kernelviz.bench.code_facts import CodeFacts
from kernelviz.core import CompiledCode, Result
from kernelviz.core.code_facts import CubinFacts
from kernelviz.core.machine_code import FactDifference, KernelFacts, UnknownCode
from kernelviz.machine_code.differences import fact_differences
from kernelviz.metrics.comparison import Comparison, Pair


@dataclass(frozen=True, kw_only=True, slots=True)
class KernelDifference:
    """Two kernels that correspond: the first is A's. `same_file`: they are one kernel of the same bytes. `differences` is empty
    if no fact differs."""

    a: CompiledCode
    b: CompiledCode
    same_file: bool
    differences: tuple[FactDifference, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class CodeDifference:
    """The kernels of a pair of cases, or why they cannot be compared."""

    pair: Pair
    kernels: tuple[KernelDifference, ...] = ()
    unknown: UnknownCode | None = None


@dataclass(frozen=True, slots=True)
class _Two:
    """Two kernels that correspond, with the digests of their cubins."""

    a: CompiledCode
    b: CompiledCode
    digests: tuple[str, str]

    @property
    def same_file(self) -> bool:
        return self.digests[0] == self.digests[1] and self.a.kernel == self.b.kernel


def code_differences(facts: CodeFacts, compared: Comparison) -> tuple[CodeDifference, ...]:
    """One entry for each pair of the comparison, in its order.

    Kernels correspond if they have the same name, or if each side launches one. Needs nvdisasm, but no GPU.
    """
    return _differences(facts, compared, compared.pairs)


def code_difference(facts: CodeFacts, compared: Comparison, pair: Pair) -> CodeDifference:
    """`code_differences` of one pair."""
    return _differences(facts, compared, (pair,))[0]


def _differences(facts: CodeFacts, compared: Comparison, pairs: Sequence[Pair]) -> tuple[CodeDifference, ...]:
    matched = [(pair, tuple(_corresponding(pair.before, pair.after))) for pair in pairs]
    changed = [two.digests for _, twos in matched for two in twos if not two.same_file]
    cubins = {
        **facts.of_cubins(compared.a, (first for first, _ in changed)),
        **facts.of_cubins(compared.b, (second for _, second in changed)),
    }
    return tuple(_difference(pair, twos, cubins) for pair, twos in matched)


def _difference(pair: Pair, twos: tuple[_Two, ...], cubins: Mapping[str, CubinFacts]) -> CodeDifference:
    if not twos:
        both = all(map(_cubins, (pair.before, pair.after)))
        return CodeDifference(pair=pair, unknown="other_kernels" if both else "not_captured")
    reasons = {cubins[digest].reason for two in twos if not two.same_file for digest in two.digests} - {None}
    if reasons:
        return CodeDifference(pair=pair, unknown="not_here" if "not_here" in reasons else "no_tool")
    return CodeDifference(pair=pair, kernels=tuple(_compared(two, cubins) for two in twos))


def _compared(two: _Two, cubins: Mapping[str, CubinFacts]) -> KernelDifference:
    differences: tuple[FactDifference, ...] = ()
    if not two.same_file:
        a, b = (_own(cubins[digest].kernels, code) for digest, code in zip(two.digests, (two.a, two.b), strict=True))
        differences = fact_differences(a, b) if a is not None and b is not None else ()
    return KernelDifference(a=two.a, b=two.b, same_file=two.same_file, differences=differences)


def _own(facts: tuple[KernelFacts, ...], code: CompiledCode) -> KernelFacts | None:
    """The facts of this kernel, in a cubin that may hold several."""
    return next((one for one in facts if one.name == code.kernel), facts[0] if len(facts) == 1 else None)


def _cubins(result: Result) -> dict[tuple[str, int], tuple[CompiledCode, str]]:
    """The kernels of a result that have a cubin, each with the cubin's digest, by name; equal names are numbered."""
    cubins: dict[tuple[str, int], tuple[CompiledCode, str]] = {}
    for code in result.code or ():
        for artifact in code.artifacts:
            if artifact.kind == "cubin":
                number = sum(name == code.kernel for name, _ in cubins)
                cubins[code.kernel, number] = code, artifact.digest
    return cubins


def _corresponding(before: Result, after: Result) -> Iterator[_Two]:
    a, b = _cubins(before), _cubins(after)
    names = [(name, name) for name in a if name in b]
    if not names and len(a) == len(b) == 1:
        names = [(next(iter(a)), next(iter(b)))]
    for first, second in names:
        yield _Two(a[first][0], b[second][0], (a[first][1], b[second][1]))


def records(differences: Sequence[CodeDifference]) -> list[dict[str, Any]]:
    """One record for each kernel of each pair, for JSON and data frames; one without a kernel where it is unknown."""
    listed: list[dict[str, Any]] = []
    for one in differences:
        case = {
            "problem": one.pair.problem.key,
            "variant_a": one.pair.before.variant,
            "variant_b": one.pair.after.variant,
        }
        listed += [{**case, **_record(kernel)} for kernel in one.kernels] or [{**case, "unknown": one.unknown}]
    return listed


def _record(kernel: KernelDifference) -> dict[str, Any]:
    sides = {"a": kernel.a, "b": kernel.b}
    about = {
        f"{field}_{side}": getattr(code, field)
        for side, code in sides.items()
        for field in ("kernel", "compiler", "version")
    }
    return {**about, "same_file": kernel.same_file, "differences": msgspec.to_builtins(kernel.differences)}
