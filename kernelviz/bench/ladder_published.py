"""What the catalogue and the published claims say of the variants of a ladder."""

from functools import lru_cache

from kernelviz.bench.claims import problem_of
from kernelviz.core import Device, KernelvizError, Problem
from kernelviz.core.claim import Claim, RatioTest, TimeTest
from kernelviz.formats.claim_files import shipped_claims
from kernelviz.machine_code.techniques import expected_on
from kernelviz.metrics.ladder import DeclaredVariant, PublishedStep, PublishedValue
from kernelviz.ops import Op, Variant, catalogue


def declared(op: Op, problem: Problem, device: Device | None = None) -> tuple[DeclaredVariant, ...]:
    """What the catalogue says of the variants of an op, in their order, about a problem. `device`: whose techniques count."""
    capability = None if device is None else device.compute_capability
    architecture = "" if capability is None else f"sm_{capability[0]}{capability[1]}"
    return tuple(_declared(op, variant, problem, architecture) for variant in op.of(problem).variants)


def _declared(op: Op, variant: Variant, problem: Problem, architecture: str) -> DeclaredVariant:
    published, values = published_of(op, variant, problem)
    return DeclaredVariant(
        name=variant.name,
        backend=variant.backend,
        idea=variant.summary,
        techniques=expected_on(variant.techniques, architecture) if architecture else frozenset(),
        published=published,
        published_values=values,
        only_when_named=variant.only_when_named,
        digest=_digest(op.name, variant.name, problem.direction == "backward"),
        refusal=variant.refuses(problem),
    )


@lru_cache(maxsize=2048)
def _digest(op: str, variant: str, backward: bool) -> str | None:
    """The digest of a variant of the package; None for one of a plug-in, whose code only the worker reads."""
    own = catalogue().get(op)
    known = next((v for v in own.variants if v.name == variant), None) if own is not None else None
    return None if known is None else (known.of_backward() if backward else known).source_digest()


def published_of(
    op: Op, variant: Variant, problem: Problem
) -> tuple[tuple[PublishedStep, ...], tuple[PublishedValue, ...]]:
    """The gains and the rates or times that sources report for the idea of a variant: those of the catalogue, and those of the
    published claims. Of several numbers of one source over one variant, the one at this problem, else at its number format."""
    claims = [c for c in shipped_claims().claims if c.op == op.name and c.cases[0].variant == variant.name]
    gains = [
        (claimed_problem(op, c), _step(op, c))
        for c in claims
        if isinstance(c.test, RatioTest) and len(c.test.over) == 1
    ]
    declared_gain = variant.published
    if declared_gain is not None and not any(
        (step.over, step.source) == (declared_gain.over, declared_gain.source) for _, step in gains
    ):
        gains.append(
            (None, PublishedStep(declared_gain.factor, declared_gain.over, declared_gain.source, declared_gain.gpu))
        )
    best: dict[tuple[str, str], tuple[int, PublishedStep]] = {}
    for at, step in gains:
        rank = _rank(at, problem)
        also_declared = declared_gain is not None and (step.over, step.source) == (
            declared_gain.over,
            declared_gain.source,
        )
        if rank < 2 or also_declared:
            key = (step.over, step.source)
            if key not in best or rank < best[key][0]:
                best[key] = rank, step
    values = [_value(c) for c in claims if isinstance(c.test, TimeTest) and claimed_problem(op, c) == problem]
    return tuple(step for _, step in best.values()), tuple(value for value in values if value is not None)


def _rank(at: Problem | None, problem: Problem) -> int:
    """0: this problem; 1: its number format and direction, or not stated; 2: another one."""
    if at is None:
        return 1
    if at.key == problem.key:
        return 0
    return 1 if (at.dtype, at.compute, at.direction) == (problem.dtype, problem.compute, problem.direction) else 2


def claimed_problem(op: Op, claim: Claim) -> Problem | None:
    """The problem of a claim about an op; None if the op of today does not take its sizes."""
    try:
        return problem_of(op, claim.cases[0])
    except KernelvizError:
        return None


def _step(op: Op, claim: Claim) -> PublishedStep:
    assert isinstance(claim.test, RatioTest)
    return PublishedStep(
        factor=claim.published.value,
        over=claim.test.over[0].variant,
        source=shipped_claims().source_of(claim).where,
        device=claim.published_on,
        problem=claimed_problem(op, claim),
        remark=claim.remark or claim.substitute,
    )


def _value(claim: Claim) -> PublishedValue | None:
    unit = claim.published.unit
    if unit not in ("flop/s", "B/s", "s"):
        return None
    return PublishedValue(
        value=claim.published.value,
        unit=unit,
        source=shipped_claims().source_of(claim).where,
        device=claim.published_on,
        remark=claim.remark or claim.substitute,
    )
