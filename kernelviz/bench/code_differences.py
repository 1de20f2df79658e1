"""Use case: how the machine code of the two sides of a comparison differs, case by case."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from kernelviz.bench.code import Code
from kernelviz.core import CompiledCode, Result
from kernelviz.core.machine_code import FactDifference, KernelFacts, UnknownCode
from kernelviz.machine_code.cubin import NotACubin
from kernelviz.machine_code.differences import fact_differences
from kernelviz.machine_code.facts import facts_of_many
from kernelviz.machine_code.tools import ToolFailed, ToolUnavailable
from kernelviz.metrics.comparison import Comparison, Pair


@dataclass(frozen=True, kw_only=True, slots=True)
class KernelDifference:
    """Two kernels that correspond: the first is A's. `same_file`: they are the same bytes. `differences` is empty if no fact
    differs."""

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


def code_differences(code: Code, compared: Comparison) -> tuple[CodeDifference, ...]:
    """One entry for each pair of the comparison, in its order.

    Kernels correspond if they have the same name, or if each side launches one. Needs nvdisasm, but no GPU.
    """
    return _differences(code, compared, compared.pairs)


def code_difference(code: Code, compared: Comparison, pair: Pair) -> CodeDifference:
    """`code_differences` of one pair."""
    return _differences(code, compared, (pair,))[0]


def _differences(code: Code, compared: Comparison, pairs: Sequence[Pair]) -> tuple[CodeDifference, ...]:
    readers = code.contents_of(compared.a).get, code.contents_of(compared.b).get
    contents: dict[str, bytes] = {}
    matched: list[tuple[Pair, tuple[_Two, ...], UnknownCode | None]] = []
    for pair in pairs:
        twos = tuple(_corresponding(pair.before, pair.after))
        for two in twos:
            for digest, read in zip(two.digests, readers, strict=True):
                content = contents.get(digest) or read(digest)
                if content is not None:
                    contents[digest] = content
        here = all(digest in contents for two in twos for digest in two.digests)
        unknown: UnknownCode | None = None
        if not twos:
            unknown = "other_kernels" if all(map(_cubins, (pair.before, pair.after))) else "not_captured"
        elif not here:
            unknown = "not_here"
        matched.append((pair, twos, unknown))
    needed = sorted({d for _, twos, unknown in matched if not unknown for two in twos for d in _to_read(two)})
    try:
        facts = dict(zip(needed, facts_of_many([contents[digest] for digest in needed]), strict=True))
    except (ToolUnavailable, ToolFailed, NotACubin):
        return tuple(CodeDifference(pair=pair, unknown=unknown or "no_tool") for pair, _, unknown in matched)
    return tuple(
        CodeDifference(pair=pair, unknown=unknown)
        if unknown
        else CodeDifference(pair=pair, kernels=tuple(_compared(two, facts) for two in twos))
        for pair, twos, unknown in matched
    )


def _to_read(two: _Two) -> tuple[str, ...]:
    return () if two.digests[0] == two.digests[1] else two.digests


def _compared(two: _Two, facts: dict[str, tuple[KernelFacts, ...]]) -> KernelDifference:
    same = two.digests[0] == two.digests[1]
    sides = zip((two.a, two.b), two.digests, strict=True)
    a, b = (None if same else _own(facts[digest], code) for code, digest in sides)
    differences = fact_differences(a, b) if a is not None and b is not None else ()
    return KernelDifference(a=two.a, b=two.b, same_file=same, differences=differences)


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
