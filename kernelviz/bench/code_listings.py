"""Use case: the code of a kernel line by line, in every language that was captured, and how that of two kernels differs.

nvdisasm reads a cubin in a process of its own with limits, because it may come from a document of somebody else. What was read is
remembered by the digest of the cubin.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from tempfile import TemporaryFile
from typing import Final, Literal, get_args

import msgspec
from msgspec.structs import replace

from kernelviz.bench.code import CaseArtifact, Code, CodeNotHere
from kernelviz.bench.code_facts import MOST_CUBIN_BYTES, CodeFacts
from kernelviz.core import BadField, CodeKind, DocumentError, Problem, Run, check_name
from kernelviz.core.code_facts import CubinFacts, NoFactsReason
from kernelviz.core.code_listing import CodeListing, ListingKind, MissingListing, MissingReason
from kernelviz.formats import limited_process
from kernelviz.machine_code.mlir_listing import mlir_listing
from kernelviz.machine_code.normalisation import normalised
from kernelviz.machine_code.ptx_listing import ptx_listing
from kernelviz.machine_code.sass_listing import SassLines, from_standard_input, sass_listing
from kernelviz.machine_code.source_lines import Source, source_listing
from kernelviz.machine_code.tools import ToolUnavailable, tool_paths
from kernelviz.metrics.line_diff import LineDiff, line_diff
from kernelviz.text.code_listings import describe_missing_listing

KINDS: Final[tuple[ListingKind, ...]] = get_args(ListingKind)
NORMALISED_KINDS: Final[frozenset[ListingKind]] = frozenset({"ttir", "ttgir", "ptx", "sass", "main-loop"})
"""Registers, addresses and numbers of locations of these differ between any two compilations, so their difference is normalised
unless somebody asks for the text as it is."""
_PROCESSOR_S = 30
_MOST_REMEMBERED = 24
"""Cubins whose SASS stays in memory: 5,000 instructions take about 5 MB."""
_MLIR: Final[tuple[Literal["ttir", "ttgir"], ...]] = ("ttir", "ttgir")
_REASONS: dict[NoFactsReason, MissingReason] = {
    "no_tool": "no_tool",
    "unreadable": "unreadable",
    "too_large": "too_large",
    "not_here": "not_here",
}


@dataclass(frozen=True, kw_only=True)
class KernelCode:
    """The code of a kernel of a case. `listings`: what there is; `missing`: why the other kinds are not there. `artifacts`: the
    files behind it."""

    run_id: str
    problem: Problem
    variant: str
    kernel: str
    artifacts: tuple[CaseArtifact, ...]
    listings: Mapping[ListingKind, CodeListing]
    missing: Mapping[ListingKind, MissingListing]

    def text_of(self, kind: ListingKind) -> str:
        """The text of this kind. Errors: BadField that says why there is none."""
        listing = self.listings.get(kind)
        if listing is None:
            why = self.missing.get(kind)
            raise BadField("kind", kind, "nothing was read" if why is None else str(describe_missing_listing(why)))
        return listing.text

    @property
    def plugin(self) -> bool:
        """Whether it is the code of a user's own file."""
        return any(artifact.code.plugin for artifact in self.artifacts)


@dataclass(frozen=True, kw_only=True)
class CodeDiff:
    """How two listings of a kind differ. `lines_a`, `lines_b`: of each compared line the number (from 0) of its line in the
    listing. `normalised`: whether addresses, register numbers and labels are left out."""

    kind: ListingKind
    normalised: bool
    diff: LineDiff
    lines_a: tuple[int, ...]
    lines_b: tuple[int, ...]


class CodeListings:
    """The listings of cases of stored runs, of the runs that came with the package, and of documents."""

    def __init__(self, code: Code, facts: CodeFacts) -> None:
        self._code, self._facts = code, facts
        self._known: OrderedDict[str, SassLines] = OrderedDict()
        self._lock, self._reading = threading.Lock(), threading.Lock()

    def of_kernel(
        self,
        run: Run,
        variant: str,
        problem: str,
        kernel: str | None = None,
        kinds: Iterable[ListingKind] = KINDS,
    ) -> KernelCode:
        """The code of a kernel of a case, by default of its first one. With SASS it takes one to two seconds, unless its cubin
        was read before.

        `kinds`: which listings are made. Errors: UnknownName for a variant, problem or kernel that the run does not have;
        BadField if nothing was captured.
        """
        artifacts = self._code.of_case(run, variant, problem=problem)
        kernel = artifacts[0].kernel if kernel is None else kernel
        check_name("kernel", kernel, dict.fromkeys(a.kernel for a in artifacts), of=f"variant {variant!r}")
        own = tuple(artifact for artifact in artifacts if artifact.kernel == kernel)
        wanted = list(kinds)
        listings: dict[ListingKind, CodeListing] = {}
        missing: dict[ListingKind, MissingListing] = {}
        texts: dict[CodeKind, list[tuple[CaseArtifact, str]]] = {}
        for artifact in own:
            if artifact.artifact.kind == "cubin":
                continue
            try:
                text = artifact.text()
            except CodeNotHere as error:
                absent: ListingKind = artifact.artifact.kind
                missing[absent] = MissingListing(kind=absent, reason="not_here", message=str(error))
            else:
                texts.setdefault(artifact.artifact.kind, []).append((artifact, text))
        if "ptx" in texts and {"ptx", "source"} & set(wanted):
            listings["ptx"] = ptx_listing(texts["ptx"][0][1])
        if {"sass", "main-loop"} & set(wanted):
            self._add_sass(run, own, kernel, listings, missing)
        for mlir in _MLIR:
            if mlir in texts and mlir in wanted:
                listings[mlir] = mlir_listing(mlir, texts[mlir][0][1])
        if "source" in texts and "source" not in missing:
            listings["source"] = _source(texts, kernel, listings)
        for kind in wanted:
            if kind not in listings and kind not in missing:
                reason: MissingReason = "no_machine_code" if _for_cpu(own) else "not_captured"
                missing[kind] = MissingListing(kind=kind, reason=reason)
        return KernelCode(
            run_id=run.id,
            problem=own[0].problem,
            variant=variant,
            kernel=kernel,
            artifacts=own,
            listings={kind: _with_known_lines(listings[kind], listings) for kind in wanted if kind in listings},
            missing={kind: missing[kind] for kind in wanted if kind in missing},
        )

    def kernels_of(self, run: Run, variant: str, problem: str) -> tuple[str, ...]:
        """The kernels of a case that have code. Errors: UnknownName; BadField if nothing was captured."""
        return tuple(dict.fromkeys(a.kernel for a in self._code.of_case(run, variant, problem=problem)))

    def _add_sass(
        self,
        run: Run,
        artifacts: Sequence[CaseArtifact],
        kernel: str,
        listings: dict[ListingKind, CodeListing],
        missing: dict[ListingKind, MissingListing],
    ) -> None:
        cubin = next((artifact for artifact in artifacts if artifact.artifact.kind == "cubin"), None)
        if cubin is None:
            return
        with ThreadPoolExecutor(2) as both:
            reading = both.submit(self._sass_lines, cubin)
            facts: CubinFacts = self._facts.of_cubins(run, [cubin.digest])[cubin.digest]
            lines = reading.result()
        if lines.reason is not None:
            for kind in ("sass", "main-loop"):
                missing[kind] = MissingListing(kind=kind, reason=lines.reason, message=lines.message)
            return
        own = {name: of for name, of in lines.kernels.items() if name == kernel} or lines.kernels
        listings["sass"] = sass_listing(own, facts.kernels)
        main_part = sass_listing(own, facts.kernels, main_loop_only=True)
        if any(line.address is not None for line in main_part.lines):
            listings["main-loop"] = main_part
        else:
            reason = "no_main_loop" if facts.reason is None else _REASONS.get(facts.reason, "unreadable")
            missing["main-loop"] = MissingListing(kind="main-loop", reason=reason, message=facts.message)

    def _sass_lines(self, cubin: CaseArtifact) -> SassLines:
        """One thread reads at a time, so that several sessions do not read the same."""
        with self._reading:
            with self._lock:
                if known := self._known.get(cubin.digest):
                    self._known.move_to_end(cubin.digest)
                    return known
            try:
                content = cubin.content()
            except CodeNotHere as error:
                return SassLines(reason="not_here", message=str(error))
            if len(content) > MOST_CUBIN_BYTES:
                return SassLines(reason="too_large")
            if not tool_paths("nvdisasm"):
                return SassLines(reason="no_tool", message=str(ToolUnavailable("nvdisasm")))
            lines = _read(content)
            if lines.reason != "no_tool":
                with self._lock:
                    self._known[cubin.digest] = lines
                    while len(self._known) > _MOST_REMEMBERED:
                        self._known.popitem(last=False)
            return lines


def _read(content: bytes) -> SassLines:
    """The SASS of a cubin, read by a process of its own."""
    with TemporaryFile() as file:
        file.write(content)
        file.seek(0)
        try:
            answer = limited_process.call(from_standard_input, (), file, processor_s=_PROCESSOR_S)
        except DocumentError as error:
            return SassLines(reason="unreadable", message=str(error))
    return msgspec.msgpack.decode(answer, type=SassLines)


def _source(
    texts: Mapping[CodeKind, Sequence[tuple[CaseArtifact, str]]],
    kernel: str,
    listings: Mapping[ListingKind, CodeListing],
) -> CodeListing:
    files = dict.fromkeys(file for listing in listings.values() for file in listing.files)
    sources = [Source(artifact.name, text) for artifact, text in texts["source"]]
    compiler = texts["source"][0][0].code.compiler
    ptx = texts["ptx"][0][1] if "ptx" in texts else None
    return source_listing(sources, compiler, kernel, files, ptx)


def _with_known_lines(listing: CodeListing, listings: Mapping[ListingKind, CodeListing]) -> CodeListing:
    """The listing with the reason why none of its lines is in the sources."""
    source = listings.get("source")
    if listing.kind == "source" or not listing.files or (source is not None and set(listing.files) & set(source.files)):
        return listing
    return replace(listing, lines_unknown="other_files")


def _for_cpu(artifacts: Iterable[CaseArtifact]) -> bool:
    compilers = {artifact.code.compiler for artifact in artifacts}
    return bool(compilers) and not any(a.artifact.kind in ("ptx", "cubin") for a in artifacts) and "c++" in compilers


def code_diff(a: KernelCode, b: KernelCode, kind: ListingKind, *, normalise: bool | None = None) -> CodeDiff:
    """How the code of two kernels differs. `normalise`: without addresses, register numbers, labels and locations, which
    differ between any two compilations; by default for all but sources.

    Errors: BadField if a side does not have this kind.
    """
    normalise = kind in NORMALISED_KINDS if normalise is None else normalise
    if normalise and kind not in NORMALISED_KINDS:
        raise BadField("normalise", "yes", f"only {', '.join(sorted(NORMALISED_KINDS))} can be normalised, not {kind}")
    sides = []
    for name, side in (("A", a), ("B", b)):
        listing = side.listings.get(kind)
        if listing is None:
            why = side.missing.get(kind)
            reason = "nothing was read" if why is None else str(describe_missing_listing(why))
            raise BadField("kind", kind, f"{name} ({side.variant}): {reason}")
        sides.append(
            normalised(listing)
            if normalise
            else tuple((line.text, number) for number, line in enumerate(listing.lines))
        )
    first, second = sides
    return CodeDiff(
        kind=kind,
        normalised=normalise,
        diff=line_diff([text for text, _ in first], [text for text, _ in second]),
        lines_a=tuple(number for _, number in first),
        lines_b=tuple(number for _, number in second),
    )


def counterpart(kernels: Sequence[str], kernel: str) -> str | None:
    """The kernel of another case that corresponds to a kernel: that with its name, else the first one; None if there is none."""
    return kernel if kernel in kernels else next(iter(kernels), None)
