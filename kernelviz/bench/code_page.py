"""Use case: the code of one kernel, or of two and their difference, as one page that opens offline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kernelviz.bench import comparison
from kernelviz.bench.bench import Bench
from kernelviz.bench.code_listings import KINDS, NORMALISED_KINDS, KernelCode, code_diff, counterpart
from kernelviz.bench.compared_code import CodeSide, changes_of, facts_of, measured_difference, result_of
from kernelviz.core import BadField
from kernelviz.core.code import Compiler
from kernelviz.core.code_facts import CaseFacts, KernelOfCase
from kernelviz.core.code_listing import ListingKind
from kernelviz.formats import code_page, code_view, shipped_runs
from kernelviz.tables.code_facts import KernelRow
from kernelviz.tables.code_sides import CODE_SIDES, ONE_SIDE, side_facts
from kernelviz.text import describe_pair, format_problem, format_variant
from kernelviz.text.code_cases import describe_case_time, describe_compiled_with
from kernelviz.text.code_changes import describe_cause, describe_changes
from kernelviz.text.code_facts import describe_missing, format_proofs
from kernelviz.text.code_listings import KIND_NAMES, describe_line_diff, describe_missing_listing, describe_normalised
from kernelviz.text.comparison import describe_verdict_of
from kernelviz.text.text import join

_TOGETHER: tuple[ListingKind, ...] = ("source", "ptx", "sass")


def code_document(bench: Bench, a: CodeSide, b: CodeSide | None = None) -> bytes:
    """The page as HTML, UTF-8. With `b` it shows how B differs from A, in every language that both have.

    Errors: UnknownName for a variant, problem or kernel that a run does not have; BadField if a side has no code.
    """
    listings = bench.history.code_listings
    code_a = listings.of_kernel(a.run, a.variant, a.problem, a.kernel)
    if b is None:
        views, missing = (
            list(_views_of_one(code_a)),
            [str(describe_missing_listing(m)) for m in code_a.missing.values()],
        )
        facts = facts_of(bench, a)
        row = kernel_row(facts, code_a.kernel)
        content = code_page.CodePage(
            title=f"{format_variant(a.variant)}: code of {code_a.kernel}",
            sentences=(*_about("", a, code_a, facts), *missing),
            headings=tuple(column.title for column in ONE_SIDE),
            rows=tuple((fact.name, fact.a or "unknown", fact.help) for fact in side_facts(row, None)),
            views=views,
        )
    else:
        kernel_b = b.kernel or counterpart(listings.kernels_of(b.run, b.variant, b.problem), code_a.kernel)
        code_b = listings.of_kernel(b.run, b.variant, b.problem, kernel_b)
        both = facts_of(bench, a), facts_of(bench, b)
        rows = kernel_row(both[0], code_a.kernel), kernel_row(both[1], code_b.kernel)
        content = code_page.CodePage(
            title=f"Code of {format_variant(a.variant)} (A) and {format_variant(b.variant)} (B)",
            sentences=(
                *_about("A: ", a, code_a, both[0]),
                *_about("B: ", b, code_b, both[1]),
                *_difference(a, b, both),
            ),
            headings=tuple(column.title for column in CODE_SIDES),
            rows=tuple(
                (fact.name, fact.a or "unknown", fact.b or "unknown", str(CODE_SIDES[3].value(fact)), fact.help)
                for fact in side_facts(*rows)
            ),
            views=list(_views_of_two(code_a, code_b, _titles(a, b))),
        )
    if not content.views:
        raise BadField("kind", "", "the two kernels have no kind of text in common, so there is nothing to show")
    return code_page.page(content)


def _about(name: str, side: CodeSide, code: KernelCode, facts: CaseFacts) -> Iterator[str]:
    """What a side is, when and where it was measured, and what its machine code proves."""
    result = result_of(side)
    described = code.artifacts[0].code
    compiler = " ".join(filter(None, (described.compiler, described.version, described.arch)))
    where = f"{side.run.environment.device.name}, measured on {side.run.created_at[:10]}, run {side.run.id}"
    case = f"{format_variant(side.variant)} at {format_problem(code.problem)}"
    yield f"{name}{case}: {describe_case_time(result)}. {where}. Kernel {code.kernel}, compiled by {compiler}."
    if compiled_with := str(join(" ", describe_compiled_with(result, code.kernel))):
        yield f"{name}{compiled_with}"
    if facts.proofs:
        yield f"{name}Techniques: {format_proofs(facts.proofs)}"
    elif facts.reason is not None:
        yield f"{name}{describe_missing(facts, shipped=shipped_runs.is_shipped(side.run.id))}"


def _difference(a: CodeSide, b: CodeSide, both: tuple[CaseFacts, CaseFacts]) -> Iterator[str]:
    """The verdict, and what changed."""
    measured = measured_difference(comparison.compare, a, b)
    changes = changes_of(both[0], both[1], measured)
    if measured is not None:
        yield f"B against A: {describe_pair(measured.pair)}. {describe_verdict_of(measured.pair)} {describe_cause(changes)}"
    if changes.changes:
        yield f"What changed from A to B: {describe_changes(changes)}."


def _views_of_one(code: KernelCode) -> Iterator[tuple[str, str]]:
    kinds = [kind for kind in KINDS if kind in code.listings]
    for kind in sorted(kinds, key=lambda kind: kind != "sass"):
        beside: tuple[ListingKind, ...] = ("source",) if kind == "source" else ("source", kind)
        yield KIND_NAMES[kind], panes_of(code, beside, control=True)
    if set(_TOGETHER) <= set(kinds):
        yield ", ".join(KIND_NAMES[kind] for kind in _TOGETHER), panes_of(code, _TOGETHER, control=False)


def _views_of_two(a: KernelCode, b: KernelCode, titles: tuple[str, str]) -> Iterator[tuple[str, str]]:
    kinds = [kind for kind in KINDS if kind in a.listings and kind in b.listings]
    for kind in sorted(kinds, key=lambda kind: kind != "main-loop"):
        if kind in NORMALISED_KINDS:
            yield f"{KIND_NAMES[kind]}, normalised", diff_of(a, b, kind, titles, normalise=True)
        yield f"{KIND_NAMES[kind]}, as it is", diff_of(a, b, kind, titles, normalise=False)


def panes_of(code: KernelCode, kinds: Sequence[ListingKind], *, control: bool) -> str:
    """What a browser gets to show these texts of a kernel side by side."""
    listings = [code.listings[kind] for kind in kinds if kind in code.listings]
    return code_view.panes(listings, compilers_of(code), control=control)


def diff_of(a: KernelCode, b: KernelCode, kind: ListingKind, titles: tuple[str, str], *, normalise: bool) -> str:
    """What a browser gets to show how two kernels differ. `titles`: what tells the sides apart."""
    result = code_diff(a, b, kind, normalise=normalise)
    summary = f"{describe_line_diff(result.diff)}{f' {describe_normalised(kind)}' if normalise else ''}"
    return code_view.diff(result.diff, titles, kind, compilers_of(a)[kind], summary)


def compilers_of(code: KernelCode) -> dict[ListingKind, Compiler]:
    """The compiler of each text: that of the source decides its language."""
    any_compiler = code.artifacts[0].code.compiler
    of_source = next((a.code.compiler for a in code.artifacts if a.kind == "source"), any_compiler)
    return {**dict.fromkeys(KINDS, any_compiler), "source": of_source}


def kernel_row(case: CaseFacts, kernel: str) -> KernelRow | None:
    """The row of a kernel's facts; that of the only kernel of its cubin if none has its name."""
    named: list[KernelOfCase] = [one for one in case.kernels if one.facts.name == kernel]
    result = next(iter(named or case.kernels), None)
    return None if result is None else KernelRow(case, result)


def _titles(a: CodeSide, b: CodeSide) -> tuple[str, str]:
    """What tells the two sides apart."""
    problems = a.problem != b.problem
    runs = a.run.id != b.run.id
    texts = [
        ", ".join([str(format_variant(s.variant)), *([s.problem] if problems else []), *([s.run.id] if runs else [])])
        for s in (a, b)
    ]
    return f"A: {texts[0]}", f"B: {texts[1]}"
