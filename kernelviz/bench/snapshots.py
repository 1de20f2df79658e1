"""A snapshot: a run, or a selection of its cases, with its own title and note, to be saved as a file."""

from collections.abc import Collection, Mapping, Sequence

import msgspec

from kernelviz.bench.planning import title_of
from kernelviz.core import LIVING, BadField, Run, check_name
from kernelviz.core.sizes import values
from kernelviz.formats import digest
from kernelviz.metrics.part_of_run import part_of_run


def selected(
    run: Run,
    *,
    variants: Sequence[str] | None = None,
    problems: Collection[str] | None = None,
    title: str | None = None,
    note: str | None = None,
) -> Run:
    """The run with only those variants and problems (by `Problem.key`). None keeps all, or the title and note
    of the run; a title that kernelviz gave it is that of the selection.

    The baseline is always included, because speed-ups are relative to it. If the facts differ from those of the run, the id is
    made of their digest; if they are the same, the id stays, whatever the title. Errors: UnknownName for a variant, BadField
    for problems, that the run does not have.
    """
    for name in variants or ():
        check_name("variant", name, run.plan.variants, of=f"run {run.id!r}")
    if problems is not None and not any(p.key in problems for p in run.plan.problems):
        raise BadField("problems", ", ".join(sorted(problems)) or "none", "the run has none of them")
    selection = narrowed(run, variants, problems)
    device = run.environment.device
    if title is None:
        title = run.title
    if title == title_of(run.plan, device, run.method):  # its count of sizes would contradict that of the selection
        title = title_of(selection.plan, device, run.method)
    done = len({r.case.key for r in selection.results if not r.given_up}) == len(selection.plan.cases())
    snapshot = msgspec.structs.replace(
        selection,
        title=title,
        note=run.note if note is None else note,
        status="finished" if done and run.status not in LIVING else run.status,
    )
    return (
        snapshot
        if snapshot.plan == run.plan
        else msgspec.structs.replace(snapshot, id=f"{run.id[:60]}-{digest(snapshot)[:12]}")
    )


def narrowed(run: Run, variants: Sequence[str] | None, problems: Collection[str] | None = None) -> Run:
    """The same run with only some of its cases in plan and results. Names that it does not have are ignored. See `selected`."""
    plan = run.plan
    names = tuple(v for v in plan.variants if variants is None or v in variants or v == plan.baseline)
    selected_problems = tuple(p for p in plan.problems if problems is None or p.key in problems)
    return part_of_run(run, names, selected_problems)


def at_sizes(run: Run, texts: Mapping[str, str]) -> tuple[str, ...]:
    """Keys of the run's problems whose axes have those sizes: ``{"n": "1024,2048"}``, ``{"n": "2^10..2^14"}``.

    Errors: UnknownName for an axis, BadField for a text that cannot be read or that no problem fits.
    """
    axes = tuple(dict.fromkeys(axis for p in run.plan.problems for axis in p.sizes))
    wanted: dict[str, set[int]] = {}
    for axis, text in texts.items():
        check_name("axis", axis, axes, of=f"run {run.id!r}")
        wanted[axis] = set(values(axis, text))
    keys = tuple(p.key for p in run.plan.problems if all(p.sizes.get(axis) in sizes for axis, sizes in wanted.items()))
    if not keys:
        known = {axis: sorted({p.sizes[axis] for p in run.plan.problems if axis in p.sizes}) for axis in texts}
        listed = "; ".join(f"{axis} is {', '.join(map(str, sizes[:20]))}" for axis, sizes in known.items())
        given = ", ".join(f"{axis}={text}" for axis, text in texts.items())
        raise BadField("--size", given, f"run {run.id!r} has no such sizes: {listed}")
    return keys
