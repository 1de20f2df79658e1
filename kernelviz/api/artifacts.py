"""The code of cases: what compilers made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast, get_args

from kernelviz import bench as use_cases
from kernelviz.api.measurement import size_text
from kernelviz.api.report import PathLike, load
from kernelviz.bench.code import CaseArtifact, Kind
from kernelviz.bench.code_listings import KINDS, KernelCode
from kernelviz.bench.code_page import code_document
from kernelviz.bench.compared_code import CodeSide, ComparedCode, compare_code
from kernelviz.bench.snapshots import at_sizes
from kernelviz.core import BadField, Run, check_name
from kernelviz.core.code_facts import CaseFacts
from kernelviz.core.code_listing import ListingKind


def code(
    run: Run | PathLike,
    variant: str,
    *,
    problem: str | None = None,
    sizes: Mapping[str, int | str | Sequence[int]] | None = None,
    kind: str | None = None,
    kernel: str | None = None,
) -> tuple[CaseArtifact, ...]:
    """The artifacts that compilers made for a variant of a run: sources, Triton's languages, PTX and cubins.

    Each has kind, kernel, compiler (in `code`), size and digest; `text()` and `content()` read it, and `facts()` of a cubin
    are registers, spills, instructions and main loops. run: a run, its id, or a file that holds one. problem: the key of a
    problem (`Problem.key`). sizes: only problems with these sizes. kind: source, ttir, ttgir, ptx, sass (made of the cubin by
    nvdisasm) or cubin. Errors: UnknownName; BadField if nothing was captured for the variant, with the reason.
    """
    opened = run if isinstance(run, Run) else load(run)
    if kind is not None:
        check_name("kind", kind, get_args(Kind))
    return use_cases.current().history.code.of_case(
        opened,
        variant,
        problem=problem,
        problems=_problems(opened, sizes),
        kind=cast(Kind | None, kind),
        kernel=kernel,
    )


def code_listing(
    run: Run | PathLike,
    variant: str,
    *,
    problem: str | None = None,
    sizes: Mapping[str, int | str | Sequence[int]] | None = None,
    kernel: str | None = None,
) -> KernelCode:
    """The code of a kernel line by line: `listings` has source, ttir, ttgir, ptx, sass and main-loop, as far as they exist.

    Each line has the source lines that it comes from, and one of SASS also its address, its control codes, and the warp role in
    whose main loop it is. `missing` says why a text is not there. It needs nvdisasm and no GPU. run: a run, its id, or a file
    that holds one. problem, sizes: one problem, if the run has several. kernel: by default the first one. Errors: UnknownName;
    BadField if nothing was captured, or if several problems are left.
    """
    opened = run if isinstance(run, Run) else load(run)
    return use_cases.current().history.code_listings.of_kernel(
        opened, variant, _one_problem(opened, problem, sizes), kernel
    )


def code_diff(
    a: Run | PathLike,
    variant_a: str,
    variant_b: str | None = None,
    *,
    b: Run | PathLike | None = None,
    problem: str | None = None,
    problem_b: str | None = None,
    kernel: str | None = None,
    kind: str = "sass",
    normalise: bool | None = None,
) -> ComparedCode:
    """How the code of two kernels differs, line by line, beside the measured difference.

    `diff` has the lines, `changes` what changed in the machine code with the likeliest cause of the difference first, and
    `measured` the verdict of `compare`. a, b: runs, their ids, or files; B is by default the run A. variant_b, problem_b: by
    default those of A. kind: source, ttir, ttgir, ptx, sass or main-loop. normalise: without addresses, labels, locations
    and register numbers, by default for all but source. Errors: UnknownName; BadField if a side has no such code.
    """
    check_name("kind", kind, KINDS)
    first = a if isinstance(a, Run) else load(a)
    second = first if b is None else b if isinstance(b, Run) else load(b)
    key = _one_problem(first, problem, None)
    return compare_code(
        use_cases.current(),
        CodeSide(first, variant_a, key, kernel),
        CodeSide(second, variant_b or variant_a, problem_b or key),
        cast(ListingKind, kind),
        normalise=normalise,
    )


def code_page(
    a: Run | PathLike,
    variant_a: str,
    variant_b: str | None = None,
    *,
    b: Run | PathLike | None = None,
    problem: str | None = None,
    problem_b: str | None = None,
    kernel: str | None = None,
) -> bytes:
    """One HTML page that opens offline, with every text of a kernel, its facts and techniques.

    With a second variant, run or problem it shows the difference, in every language that both have. The arguments and errors are
    those of `code_diff`.
    """
    first = a if isinstance(a, Run) else load(a)
    key = _one_problem(first, problem, None)
    side = CodeSide(first, variant_a, key, kernel)
    if variant_b is None and b is None and problem_b is None:
        return code_document(use_cases.current(), side)
    second = first if b is None else b if isinstance(b, Run) else load(b)
    return code_document(use_cases.current(), side, CodeSide(second, variant_b or variant_a, problem_b or key))


def _one_problem(run: Run, problem: str | None, sizes: Mapping[str, int | str | Sequence[int]] | None) -> str:
    """The key of the one problem that is meant. Errors: BadField that names them if there are several."""
    if problem is not None:
        return problem
    keys = _problems(run, sizes) or tuple(p.key for p in run.plan.problems)
    if len(keys) != 1:
        raise BadField("problem", f"{len(keys)} problems", f"name one: {'; '.join(keys)}")
    return keys[0]


def code_facts(
    run: Run | PathLike,
    variant: str | None = None,
    *,
    problem: str | None = None,
    sizes: Mapping[str, int | str | Sequence[int]] | None = None,
    kernel: str | None = None,
) -> tuple[CaseFacts, ...]:
    """What the machine code of each case of a run shows: for each kernel registers, spills, shared memory, occupancy with what
    limits it, waves, and main loop; and which of the techniques that the variant declares are in it (`proofs`).

    It needs nvdisasm and no GPU, and takes some seconds for a run of 100 cases. A case without facts says why in `reason`. run: a
    run, its id, or a file that holds one. variant: by default all. problem, sizes, kernel: as for `code`. Errors: UnknownName;
    BadField if the variant has no cubin.
    """
    opened = run if isinstance(run, Run) else load(run)
    return use_cases.current().history.code_facts.of_cases(
        opened, variant, problem=problem, problems=_problems(opened, sizes), kernel=kernel
    )


def _problems(run: Run, sizes: Mapping[str, int | str | Sequence[int]] | None) -> tuple[str, ...] | None:
    texts = {axis: size_text(size, axis) for axis, size in (sizes or {}).items()}
    return tuple(at_sizes(run, texts)) if texts else None
