"""What changed from step to step of a ladder: in the source, and in the machine code of its kernels."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from kernelviz.bench.bench import Bench
from kernelviz.bench.code import Contents
from kernelviz.core import Result
from kernelviz.core.code import CodeError
from kernelviz.metrics.ladder import Ladder
from kernelviz.metrics.library_comparison import OWN
from kernelviz.metrics.source_changes import CaseSource, SourceChanges, SourceFile, source_changes
from kernelviz.text import Text


@dataclass(frozen=True, slots=True)
class LadderChanges:
    """What changed in each step of a ladder, by variant. `sentences`: about the machine code; `missing`: why there are none, in one
    line for each reason; both are empty where the machine code was not read."""

    sources: Mapping[str, SourceChanges] = field(default_factory=dict)
    sentences: Mapping[str, Text] = field(default_factory=dict)
    missing: tuple[Text, ...] = ()


def changes_of(bench: Bench, ladder: Ladder, *, machine_code: bool = True) -> LadderChanges:
    """What changed in source and, if asked for, in the machine code of each step. Reading the machine code takes seconds for
    cubins that were not read yet, and needs nvdisasm."""
    return LadderChanges(sources_of(bench, ladder))


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
