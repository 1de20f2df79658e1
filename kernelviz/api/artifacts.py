"""The code of cases: what compilers made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast, get_args

from kernelviz import bench as use_cases
from kernelviz.api.measurement import size_text
from kernelviz.api.report import PathLike, load
from kernelviz.bench.code import CaseArtifact, Kind
from kernelviz.bench.snapshots import at_sizes
from kernelviz.core import Run, check_name
from kernelviz.core.code_facts import CaseFacts


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
