"""Text of the facts about the machine code of cases."""

from collections.abc import Iterable, Iterator

from kernelviz.core.code_facts import CaseFacts, KernelOfCase, NoFactsReason, Proof, ProofStatus
from kernelviz.core.units import counted, percent
from kernelviz.text.machine_code import (
    LIMIT_NAMES,
    TECHNIQUE_NAMES,
    describe_kernel,
    describe_occupancy,
    describe_waves,
)
from kernelviz.text.results import format_variant
from kernelviz.text.text import Text, join, sentence_case

PROOF_SIGNS: dict[ProofStatus, str] = {"proven": "✓", "missing": "✕", "undeclared": "·", "observed": "·"}
PROOF_MEANINGS: dict[ProofStatus, str] = {
    "proven": "the variant declares it, and the machine code of this case has it",
    "missing": "the variant declares it, but the machine code of this case does not have it",
    "undeclared": "found in the machine code of this case, but not in the variant's list of techniques",
    "observed": "found in the machine code of this case; what the variant declared then is not known, because its code is "
    "another one today, or it is not in the catalogue",
}
_REASONS: dict[NoFactsReason, str] = {
    "library": "the kernels come compiled with the library, and kernelviz captures only what is compiled for a case",
    "not_captured": "no code was captured when this was measured (earlier versions captured none)",
    "no_machine_code": "the compiler made no cubin, because the code is for a CPU",
    "no_cubin": "source was captured but no cubin, so the machine code is unknown; kernels that come compiled with a library are "
    "not captured",
    "not_here": "the cubin is not on this machine",
    "no_tool": "unknown without nvdisasm",
    "too_large": "the cubin is larger than what is analysed (2 MiB)",
    "unreadable": "the cubin cannot be read",
}
_REMEDIES: dict[NoFactsReason, str] = {
    "not_captured": "to get it, measure the case again (Run on the page Bench, or kernelviz run)",
    "not_here": "on the machine that measured the run, kernelviz export RUN --with-code -o run.json writes a file that has it; "
    "import that file here (kernelviz import run.json, or the page History), or measure the case again",
}
_NOT_SHIPPED = (
    "kernelviz comes with the code of some recorded cases only; to get it, measure the case on such a device, unless "
    "`kernelviz recordings` says that more can be fetched"
)


def format_proof(proof: Proof) -> str:
    """A technique with the sign of its status.

    >>> format_proof(Proof(technique="vec16", status="proven")), format_proof(Proof(technique="tma", status="missing"))
    ('✓ 16-byte accesses', '✕ TMA')
    >>> format_proof(Proof(technique="tma", status="undeclared"))
    '· TMA (found, not listed)'
    >>> format_proof(Proof(technique="tma", status="observed"))
    '· TMA'
    """
    undeclared = " (found, not listed)" if proof.status == "undeclared" else ""
    return f"{PROOF_SIGNS[proof.status]} {TECHNIQUE_NAMES[proof.technique]}{undeclared}"


def format_proofs(proofs: Iterable[Proof]) -> Text:
    """Techniques with the signs of their status."""
    return join(", ", map(format_proof, proofs))


def describe_proof(proof: Proof) -> Text:
    """A technique and what its sign means."""
    return Text(f"{PROOF_SIGNS[proof.status]} {TECHNIQUE_NAMES[proof.technique]}: {PROOF_MEANINGS[proof.status]}")


def format_limits(kernel: KernelOfCase) -> Text | None:
    """What limits the occupancy; None if the occupancy is not known."""
    if kernel.occupancy is None:
        return None
    return join(", ", (LIMIT_NAMES[name] for name in kernel.occupancy.limited_by))


def describe_cases(cases: Iterable[CaseFacts]) -> Iterator[Text]:
    """Lines about the kernels of cases: for each kernel its techniques, resources and main loops once, and its launch at each
    problem."""
    by_kernel: dict[tuple[str, str, str], list[tuple[CaseFacts, KernelOfCase]]] = {}
    for case in cases:
        for kernel in case.kernels:
            by_kernel.setdefault((case.result.variant, kernel.digest, kernel.facts.name), []).append((case, kernel))
    for launches in by_kernel.values():
        case, kernel = launches[0]
        yield from describe_kernel(kernel.facts)
        yield from map(describe_proof, case.proofs)
        problems: dict[str, list[str]] = {}
        for case, kernel in launches:
            problems.setdefault(str(join("; ", describe_launch(kernel))), []).append(case.result.problem.key)
        yield from (Text(f"{', '.join(keys)}: {launch}") for launch, keys in problems.items())


def describe_launch(kernel: KernelOfCase) -> Iterator[Text]:
    """Threads and shared memory of a block, occupancy, and waves, as far as they are known."""
    threads = "unknown number of threads" if kernel.threads is None else counted(kernel.threads, "thread")
    shared = "unknown" if kernel.shared_bytes is None else f"{kernel.shared_bytes:,} bytes of"
    yield Text(f"{threads} and {shared} shared memory per block")
    yield describe_occupancy(kernel.occupancy) if kernel.occupancy else Text("occupancy unknown")
    if kernel.waves is not None:
        yield describe_waves(kernel.waves)
    elif kernel.grid is None:
        yield Text("waves unknown: no launch of this kernel was traced")


def format_waves(kernel: KernelOfCase) -> float | None:
    """How often the grid fills the device; None if unknown."""
    return None if kernel.waves is None else kernel.waves.full + kernel.waves.tail_fraction


def format_tail(kernel: KernelOfCase) -> str | None:
    """The share of the device that the last wave fills.

    >>> from kernelviz.core.machine_code import CodeFacts, KernelFacts, Waves
    >>> none = CodeFacts(instructions=0, classes={})
    >>> facts = KernelFacts(name="k", architecture="sm_90", code_bytes=0, whole=none, roles=())
    >>> waves = Waves(blocks_per_wave=132, full=3, tail_blocks=116, tail_fraction=116 / 132, utilisation=0.9697)
    >>> format_tail(KernelOfCase(facts=facts, digest="", waves=waves)), format_tail(KernelOfCase(facts=facts, digest=""))
    ('87.9 %', None)
    """
    if kernel.waves is None:
        return None
    return percent(kernel.waves.tail_fraction) if kernel.waves.tail_blocks else "none"


def describe_missing(case: CaseFacts, *, shipped: bool = False) -> Text:
    """Why a case has no facts, and what to do. `shipped`: the run came with kernelviz, so that no other machine has its code.

    >>> from kernelviz.core import Problem, Result, Timing
    >>> problem = Problem(op="add", sizes={"n": 1024}, dtype="fp32")
    >>> result = Result(problem=problem, variant="torch_eager", outcome=Timing())
    >>> print(describe_missing(CaseFacts(result=result, reason="library")))
    The kernels come compiled with the library, and kernelviz captures only what is compiled for a case.
    """
    return Text("") if case.reason is None else sentence_case(f"{_reason(case, case.reason, shipped)}.")


def _reason(case: CaseFacts, reason: NoFactsReason, shipped: bool) -> str:
    known = _NOT_SHIPPED if shipped and reason == "not_here" else _REMEDIES.get(reason, "")
    what, remedy = _REASONS[reason], case.message or known
    return f"{what}{f'; {remedy}' if remedy else ''}"


def describe_missing_by_variant(cases: Iterable[CaseFacts], *, shipped: bool = False) -> tuple[Text, ...]:
    """Why cases have no facts: a line for each reason with the variants that it concerns. `shipped`: the run came with
    kernelviz."""
    variants: dict[str, dict[str, None]] = {}
    for case in cases:
        if case.reason is not None:
            variants.setdefault(_reason(case, case.reason, shipped), {})[str(format_variant(case.result.variant))] = (
                None
            )
    return tuple(Text(f"{', '.join(names)}: {reason}.") for reason, names in variants.items())
