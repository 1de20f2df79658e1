"""What changed from step to step of a ladder: in the source, and in the machine code of its kernels."""

from collections.abc import Iterable, Iterator, Mapping

from kernelviz.bench.bench import Bench
from kernelviz.bench.code import Contents
from kernelviz.core import Result
from kernelviz.core.code import CodeError
from kernelviz.core.code_changes import CodeChanges, CodeSide
from kernelviz.core.code_facts import CaseFacts
from kernelviz.metrics.code_changes import ranked
from kernelviz.metrics.comparison import Pair
from kernelviz.metrics.ladder import Ladder
from kernelviz.metrics.ladder_changes import LadderChanges
from kernelviz.metrics.library_comparison import OWN
from kernelviz.metrics.source_changes import CaseSource, SourceChanges, SourceFile, source_changes


def changes_of(bench: Bench, ladder: Ladder, *, machine_code: bool = True) -> LadderChanges:
    """What changed in source and, if asked for, in the machine code of each step. Reading the machine code takes seconds for
    cubins that were not read yet, and needs nvdisasm."""
    return LadderChanges(sources_of(bench, ladder), code_of(bench, ladder) if machine_code else {})


def code_of(bench: Bench, ladder: Ladder) -> Mapping[str, CodeChanges]:
    """What changed in the machine code of each step against the step that it is compared with, by variant."""
    results = {r.variant: r for pair in compared_results(ladder) for r in pair}
    cases = bench.history.code_facts.of_run(ladder.run, results.values())
    return code_by_facts(ladder, cases)


def code_by_facts(ladder: Ladder, cases: Iterable[CaseFacts]) -> Mapping[str, CodeChanges]:
    """`code_of` by the facts of the run's cases, which were read before."""
    facts = {c.result.variant: c for c in cases if c.result.problem.key == ladder.problem.key}
    gains = {step.variant: step.gain for of in ladder.ladders for step in of.steps}
    return {
        after.variant: ranked(
            facts[before.variant], facts[after.variant], _faster(gains[after.variant]), headline=ladder.headline
        )
        for before, after in compared_results(ladder)
        if before.variant in facts and after.variant in facts
    }


def _faster(gain: Pair | None) -> CodeSide | None:
    """The faster side by the verdict of the step: A is the step that it is compared with."""
    if gain is None:
        return None
    return "b" if gain.kind == "faster" else "a" if gain.kind == "slower" else None


def source_of(result: Result, contents: Contents) -> CaseSource:
    """The sources of a case, with their texts as far as they are on this machine."""
    codes = result.code or ()
    artifacts = [(code, a) for code in codes for a in code.artifacts if a.kind == "source"]
    if not artifacts:
        return CaseSource(unknown="not_captured" if result.backend in OWN else "library")
    macros: dict[str, str] = {}
    warps: dict[str, int] = {}
    for code in codes:
        macros |= code.defines
        if code.warps is not None:
            warps["warps"] = code.warps
    named = {(a.name or code.kernel, a.digest, not a.name): None for code, a in artifacts}
    return CaseSource(
        kernels=tuple(dict.fromkeys(code.kernel for code in codes)),
        files=tuple(SourceFile(name, digest, _text(contents, digest), alone) for name, digest, alone in named),
        macros=macros,
        # Macros say what a configuration became.
        parameters={} if macros else {**(result.configuration or {}), **warps},
        variant=result.source_digest,
        compiled=frozenset(a.digest for code in codes for a in code.artifacts if a.kind == "cubin"),
    )


def _text(contents: Contents, digest: str) -> str | None:
    try:
        content = contents.get(digest)
    except CodeError:
        return None
    return None if content is None else content.decode("utf-8", "replace")


def sources_of(bench: Bench, ladder: Ladder) -> Mapping[str, SourceChanges]:
    """What changed in the source of each step against the step that it is compared with, by variant."""
    contents = bench.history.code.contents_of(ladder.run)
    return {
        after.variant: source_changes(source_of(before, contents), source_of(after, contents))
        for before, after in compared_results(ladder)
    }


def compared_results(ladder: Ladder) -> Iterator[tuple[Result, Result]]:
    """For each step with a result, the result that it is compared with, and its own."""
    results = {step.variant: step.result for of in ladder.ladders for step in of.steps}
    for of in ladder.ladders:
        for step in of.steps:
            before = results.get(step.over.name) if step.over is not None else None
            if before is not None and step.result is not None:
                yield before, step.result
