"""The code of cases: list and read the artifacts that compilers made, put them into documents, and take them from documents."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

import msgspec

from kernelviz.bench import kernel_sources
from kernelviz.core import (
    Artifact,
    BadField,
    Case,
    CodeContent,
    CodeKind,
    CompiledCode,
    KernelvizError,
    Problem,
    Result,
    Run,
    check_name,
)
from kernelviz.core.code import packed, unpacked
from kernelviz.core.machine_code import KernelFacts
from kernelviz.formats import recordings_file, shipped_runs
from kernelviz.machine_code.disassembly import disassembly
from kernelviz.machine_code.facts import facts_of
from kernelviz.metrics.library_comparison import time_s
from kernelviz.store import Store

MOST_RECORDED_BYTES = 4_000_000
"""Most compressed bytes of code in a recorded run."""
_IMPORTANCE: tuple[CodeKind, ...] = ("source", "cubin", "ptx", "ttgir", "ttir")
"""The order in which a document of limited size is filled: what people wrote, what the device runs, then the rest."""


@dataclass(frozen=True, kw_only=True)
class Contents:
    """The contents that a run names. `get`: the content of a digest, None if it is not here. `has`: whether it is here, without
    unpacking it; a damaged file of the store counts until somebody reads it. `shipped`: the run came with the package."""

    get: Callable[[str], bytes | None]
    has: Callable[[str], bool]
    shipped: bool = False


Kind = Literal["source", "ttir", "ttgir", "ptx", "sass", "cubin"]
"""What can be shown of a kernel: its artifacts, and SASS, which nvdisasm makes of the cubin when it is asked for."""
LeftOutReason = Literal["plugin", "not_here", "limit"]
"""Why a document lacks an artifact: it is of a plug-in, it is not on this machine, or the document would be too large."""


class CodeNotHere(KernelvizError):
    """The content of an artifact is not on this machine."""

    def __init__(self, artifact: Artifact, kernel: str, *, shipped: bool = False) -> None:
        what = f"the {artifact.kind} of {kernel} is not here ({artifact.digest[:12]}…)"
        super().__init__(
            f"{what}: kernelviz comes with the code of some recorded cases only. {_remedy_of_recorded()}"
            if shipped
            else f"{what}: the document was written without code, or "
            "it was removed when the folder of artifacts exceeded its limit (KERNELVIZ_CODE_BYTES). On the machine that measured "
            "the run, `kernelviz export RUN --with-code -o run.json` writes a file that has it; import that file here "
            "(`kernelviz import run.json`, or the page History), or measure the case again"
        )


def _remedy_of_recorded() -> str:
    if recordings_file.described() is not None and recordings_file.folder() is None:
        return "More of it can be fetched: `kernelviz recordings fetch`, or the page Gallery"
    return "It was not kept when the run was recorded; measure the case on such a device to get it"


@dataclass(frozen=True, kw_only=True)
class CaseArtifact:
    """One artifact of a case. `code` describes its kernel. `disassembled`: its text is the SASS of the cubin."""

    problem: Problem
    variant: str
    code: CompiledCode
    artifact: Artifact
    disassembled: bool = False
    contents: Contents = field(repr=False, compare=False)

    @property
    def kind(self) -> Kind:
        return "sass" if self.disassembled else self.artifact.kind

    @property
    def kernel(self) -> str:
        return self.code.kernel

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of the content; of the cubin for SASS."""
        return self.artifact.digest

    @property
    def size_bytes(self) -> int:
        return self.artifact.size_bytes

    @property
    def name(self) -> str:
        """The name of the file, where a kernel has several sources."""
        return self.artifact.name

    @property
    def is_here(self) -> bool:
        """Whether the content can be read on this machine."""
        return self.contents.has(self.digest)

    def content(self) -> bytes:
        """The bytes as the compiler made them; for SASS, those of its text. Errors: CodeNotHere; as `disassembly`."""
        content = self.contents.get(self.digest)
        if content is None:
            raise CodeNotHere(self.artifact, self.kernel, shipped=self.contents.shipped)
        return disassembly(content).encode() if self.disassembled else content

    def text(self) -> str:
        """The content as text. Errors: CodeNotHere; BadField for a cubin, which is not text."""
        if self.kind == "cubin":
            raise BadField("kind", "cubin", "it is binary; read content(), or write it to a file")
        return self.content().decode("utf-8", "replace")

    def facts(self) -> tuple[KernelFacts, ...]:
        """Registers, spills, instructions and main loops of this kernel, from its cubin; of all kernels of the file if none has
        its name. Errors: CodeNotHere; BadField for another kind; as `facts_of`."""
        if self.artifact.kind != "cubin":
            raise BadField("kind", self.kind, "facts are read from a cubin")
        facts = facts_of(dataclasses.replace(self, disassembled=False).content())
        return tuple(one for one in facts if one.name == self.kernel) or facts


def record(artifact: CaseArtifact) -> dict[str, object]:
    """One artifact with its kernel in SI base units, for JSON. An unknown value is None."""
    code = msgspec.to_builtins(artifact.code)
    about = {name: value for name, value in code.items() if name != "artifacts"}
    return {
        "problem": artifact.problem.key,
        "variant": artifact.variant,
        **about,
        **msgspec.to_builtins(artifact.artifact),
        "here": artifact.is_here,
    }


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """An artifact that is not in a document, and why."""

    artifact: Artifact
    kernel: str
    reason: LeftOutReason


class Code:
    """The artifacts of one store, of the runs that came with the package, and of documents."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def runs_with_code(self) -> frozenset[str]:
        """The ids of the stored runs and of the runs that came with the package whose results name code that was stored."""
        shipped = (name for name in shipped_runs.names() if shipped_runs.code_digests(name))
        return frozenset((*self._store.code_references.runs(), *shipped))

    def runs_with_whole_code(self) -> frozenset[str]:
        """Of `runs_with_code`, those without the recorded runs whose code is in a file of its own, which has what fits."""
        shipped = (name for name in shipped_runs.names() if shipped_runs.has_code(name))
        return frozenset((*self._store.code_references.runs(), *shipped))

    def of_case(
        self,
        run: Run,
        variant: str,
        *,
        problem: str | None = None,
        problems: Sequence[str] | None = None,
        kind: Kind | None = None,
        kernel: str | None = None,
    ) -> tuple[CaseArtifact, ...]:
        """The artifacts of a variant in a run, problem by problem, of only that kind and that kernel if these are given.

        SASS is made only when its text is read: a cubin may come from somebody else, and nvdisasm reads it then.

        `problem`, `problems`: keys of problems; by default those that have code. Errors: UnknownName for a variant, problem or
        kernel that the run does not have; BadField if nothing was captured.
        """
        check_name("variant", variant, run.plan.variants, of=f"run {run.id!r}")
        keys = [p.key for p in run.plan.problems]
        if problem is not None:
            check_name("problem", problem, keys, of=f"run {run.id!r}")
            problems = (problem,)
        chosen = [r for r in run.results if r.variant == variant and (problems is None or r.problem.key in problems)]
        listed = tuple(_artifacts(chosen, self.contents_of(run)))
        if not listed:
            raise BadField("variant", variant, _no_code(chosen))
        if kernel is not None:
            check_name("kernel", kernel, dict.fromkeys(a.kernel for a in listed), of=f"variant {variant!r}")
        if kind == "sass":
            listed += tuple(dataclasses.replace(a, disassembled=True) for a in listed if a.kind == "cubin")
        kinds = dict.fromkeys(a.kind for a in listed)
        if kind is not None and kind not in kinds:
            check_name("kind", kind, get_args(Kind))
            raise BadField("kind", kind, f"variant {variant!r} has {', '.join(kinds)}")
        return tuple(a for a in listed if kind in (None, a.kind) and kernel in (None, a.kernel))

    def of_one_problem(self, artifacts: Sequence[CaseArtifact]) -> tuple[CaseArtifact, ...]:
        """The artifacts of one problem, if they are the same for all. Errors: BadField that names the problems if they differ."""
        by_problem: dict[str, dict[str, CaseArtifact]] = {}
        for artifact in artifacts:
            by_problem.setdefault(artifact.problem.key, {}).setdefault(
                f"{artifact.kernel} {artifact.name} {artifact.digest}", artifact
            )
        variants = {tuple(of_one) for of_one in by_problem.values()}
        if len(variants) > 1:
            raise BadField("problem", f"{len(by_problem)} problems", f"name one: {'; '.join(by_problem)}")
        return tuple(next(iter(by_problem.values()), {}).values())

    def contents_of(self, run: Run) -> Contents:
        """The contents that this run names: of the document itself, of the package and its kernel files, or of the store."""
        inside = {content.digest: content for content in run.code or ()}
        shipped = run.id if shipped_runs.is_shipped(run.id) else None

        def get(digest: str) -> bytes | None:
            if digest in inside:
                return unpacked(inside[digest])
            of_package = None if shipped is None else shipped_runs.code(shipped).get(digest)
            return of_package or self._store.code.get(digest) or kernel_sources.content(digest)

        def has(digest: str) -> bool:
            of_package = shipped is not None and digest in shipped_runs.code_digests(shipped)
            return digest in inside or of_package or self._store.code.has(digest) or kernel_sources.has(digest)

        return Contents(get=get, has=has, shipped=shipped is not None)

    def with_code(
        self, run: Run, *, plugins: bool = False, most_bytes: int | None = None
    ) -> tuple[Run, tuple[LeftOut, ...]]:
        """The run with the contents that its results name, each once, and what was left out.

        `plugins`: also the code of users' own files, and what was compiled from it. `most_bytes`: most compressed bytes. The code
        of the last problem comes first, so that what fits belongs together, then that of the others; of each, sources first, then
        cubins, and of each kind the fastest variant of each backend at the last problem, then the others by their time there.
        """
        of_run = self.contents_of(run)
        listed = list(_artifacts(run.results, of_run))
        allowed = {a.digest for a in listed if plugins or not a.code.plugin}
        first: dict[str, CaseArtifact] = {}
        last = run.results[-1].problem if run.results else None
        for artifact in sorted(listed, key=lambda a: a.problem != last):  # stable: in the order of the plan
            first.setdefault(artifact.digest, artifact)
        of_variants = _ranks([result for result in run.results if result.problem == last])
        ranks: dict[str, int] = {}
        for artifact in listed:
            rank = of_variants.get(artifact.variant, len(of_variants))
            ranks[artifact.digest] = min(rank, ranks.get(artifact.digest, rank))
        contents: dict[str, CodeContent] = {}
        left_out: list[LeftOut] = []
        size = 0
        for one in sorted(
            first.values(),
            key=lambda a: (a.problem != last, _IMPORTANCE.index(a.artifact.kind), ranks[a.digest]),
        ):
            reason: LeftOutReason | None = None if one.digest in allowed else "plugin"
            raw = of_run.get(one.digest) if reason is None else None
            if reason is None and raw is None:
                reason = "not_here"
            elif raw is not None:
                content = packed(raw)
                if most_bytes is not None and size + len(content.zlib) > most_bytes:
                    reason = "limit"
                else:
                    contents[one.digest] = content
                    size += len(content.zlib)
            if reason is not None:
                left_out.append(LeftOut(artifact=one.artifact, kernel=one.kernel, reason=reason))
        return msgspec.structs.replace(run, code=tuple(contents.values())), tuple(left_out)

    def take_in(self, runs: Iterable[Run]) -> None:
        """Store the contents that documents from elsewhere hold. Their readers have compared them with their digests."""
        for run in runs:
            self._store.code.put(run.code or ())


def _ranks(results: Sequence[Result]) -> dict[str, int]:
    """Variants that are right and have a time, in the order in which people look at their code: the fastest of each backend, then
    the others, each by time."""
    times_s = {result.variant: known_s for result in results if (known_s := time_s(result)) is not None}
    backends = {result.variant: result.backend for result in results}
    by_time = sorted(times_s, key=lambda variant: times_s[variant])
    fastest = {backends[variant]: variant for variant in reversed(by_time)}
    order = sorted(by_time, key=lambda variant: fastest[backends[variant]] != variant)
    return {variant: rank for rank, variant in enumerate(order)}


def describe_left_out(left_out: Sequence[LeftOut]) -> list[str]:
    """Lines for people: how many artifacts of each kind a document lacks, and why."""
    lines: list[str] = []
    for reason, text in _REASONS.items():
        some = [one.artifact for one in left_out if one.reason == reason]
        if some:
            kinds = ", ".join(f"{count} {kind}" for kind, count in Counter(a.kind for a in some).items())
            size = sum(a.size_bytes for a in some)
            lines.append(f"left out {kinds} ({size / 1e6:.1f} MB before compression): {text}")
    return lines


_REASONS: dict[LeftOutReason, str] = {
    "plugin": "the code of plug-ins is exported only with --with-plugin-code",
    "not_here": "the contents are not on this machine",
    "limit": "it did not fit into the compressed code that a recorded run may have (--most-code-mb)",
}


def _artifacts(results: Iterable[Result], contents: Contents) -> Iterator[CaseArtifact]:
    for result in results:
        for code in result.code or ():
            for artifact in code.artifacts:
                yield CaseArtifact(
                    problem=result.problem, variant=result.variant, code=code, artifact=artifact, contents=contents
                )


def _no_code(results: Sequence[Result]) -> str:
    """Why no result has code, as the remedy of an error."""
    if not results:
        return "it has no result yet for this problem"
    cases = "; ".join(Case(problem=r.problem, variant=r.variant).key for r in results[:3])
    backend = results[0].backend
    if backend in ("torch", "library"):
        return f"its backend is {backend}, whose kernels come compiled with the library ({cases})"
    return (
        f"no compiler's output was captured for {cases}; results of earlier versions have none, measure the case again"
    )
