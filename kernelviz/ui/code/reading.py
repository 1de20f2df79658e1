"""What the page Code sends to the browser, made once for all sessions that ask for the same."""

from collections.abc import Sequence
from dataclasses import dataclass

from kernelviz.bench import Bench
from kernelviz.bench.code_listings import KernelCode, code_diff
from kernelviz.bench.code_page import compilers_of, panes_of
from kernelviz.core.code_listing import ListingKind
from kernelviz.core.run_cache import RunCache
from kernelviz.formats import code_view
from kernelviz.text import Text, format_sizes, format_variant
from kernelviz.text.code_listings import (
    KIND_NAMES,
    describe_line_diff,
    describe_missing_listing,
    describe_normalised,
    format_listing,
)
from kernelviz.ui.code.choice import Selected, Side

_BESIDE: dict[Selected, tuple[ListingKind, ...]] = {"all": ("source", "ptx", "sass"), "source": ("source",)}


@dataclass(frozen=True, slots=True)
class CodeToShow:
    """The packed content, what it is for screen readers, one sentence about it, and why texts are missing."""

    packed: str
    alt: str
    sentence: Text
    missing: tuple[Text, ...]


_contents: RunCache[CodeToShow] = RunCache(most=48 * 2**20, size=lambda content: len(content.packed) + 1_000)


def of_one(bench: Bench, side: Side, kind: Selected, *, control: bool) -> CodeToShow:
    """The text of a kernel beside its source."""
    kinds = tuple(k for k in _BESIDE.get(kind, ("source", kind)) if k != "all")
    key = ("one", side.run, side.variant, side.problem.key, side.kernel, kinds, control, _here(bench, side))
    return _contents.get(key, lambda: _one(bench, side, kinds, control=control))


def of_two(bench: Bench, first: Side, second: Side, kind: ListingKind, *, normalise: bool) -> CodeToShow:
    """The difference of two kernels."""
    key = (
        "two", first.run, first.variant, first.problem.key, first.kernel, second.run, second.variant, second.problem.key,
        second.kernel, kind, normalise, _here(bench, first), _here(bench, second),
    )  # fmt: skip
    return _contents.get(key, lambda: _two(bench, first, second, kind, normalise=normalise))


def _here(bench: Bench, side: Side) -> tuple[bool, ...]:
    """Which of its artifacts are on this machine, which may change."""
    has = bench.history.code.contents_of(side.run).has
    return tuple(has(a.digest) for code in side.result.code or () for a in code.artifacts)


def _one(bench: Bench, side: Side, kinds: Sequence[ListingKind], *, control: bool) -> CodeToShow:
    code = _read(bench, side, kinds)
    listings = [code.listings[kind] for kind in kinds if kind in code.listings]
    if not listings:
        return CodeToShow("", "", Text(""), _missing(code, kinds))
    packed = panes_of(code, kinds, control=control)
    alt = f"{', '.join(str(format_listing(one)) for one in listings)} of the kernel {code.kernel}"
    return CodeToShow(packed, alt, Text(""), _missing(code, kinds))


def _two(bench: Bench, first: Side, second: Side, kind: ListingKind, *, normalise: bool) -> CodeToShow:
    codes = _read(bench, first, (kind,)), _read(bench, second, (kind,))
    missing = tuple(
        Text(f"{n}: ") + line for n, code in zip("AB", codes, strict=True) for line in _missing(code, (kind,))
    )
    if missing:
        return CodeToShow("", "", Text(""), missing)
    difference = code_diff(codes[0], codes[1], kind, normalise=normalise)
    titles = tuple(f"{n}: {_title(side, first, second)}" for n, side in zip("AB", (first, second), strict=True))
    packed = code_view.diff(difference.diff, (titles[0], titles[1]), kind, compilers_of(codes[0])[kind])
    sentence = describe_line_diff(difference.diff)
    if normalise:
        sentence = sentence + f" {describe_normalised(kind)}"
    return CodeToShow(packed, f"Difference of the {KIND_NAMES[kind]} of two kernels. {sentence}", sentence, ())


def _title(side: Side, first: Side, second: Side) -> str:
    """What tells the two sides apart."""
    parts = [str(format_variant(side.variant))]
    if first.problem != second.problem:
        parts.append(format_sizes(side.problem))
    if first.run.id != second.run.id:
        parts.append(side.summary.name if first.summary.name != second.summary.name else side.run.id)
    return ", ".join(parts)


def _read(bench: Bench, side: Side, kinds: Sequence[ListingKind]) -> KernelCode:
    return bench.history.code_listings.of_kernel(side.run, side.variant, side.problem.key, side.kernel, kinds)


def _missing(code: KernelCode, kinds: Sequence[ListingKind]) -> tuple[Text, ...]:
    return tuple(describe_missing_listing(code.missing[kind]) for kind in kinds if kind in code.missing)
