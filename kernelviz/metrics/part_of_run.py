"""A part of a run: some of its variants and problems."""

import msgspec

from kernelviz.core import Problem, Run
from kernelviz.core.code import digests
from kernelviz.core.run_cache import RunCache

_parts: RunCache[Run] = RunCache(most=256)
"""The same part of a run is the same object, so that its rows and figures are computed once."""


def part_of_run(run: Run, variants: tuple[str, ...], problems: tuple[Problem, ...]) -> Run:
    """The run with only these variants and problems in its plan and results; the run itself if these are all."""
    if (variants, problems) == (run.plan.variants, run.plan.problems):
        return run
    return _parts.get((run, variants, problems), lambda: _selected(run, variants, problems))


def _selected(run: Run, variants: tuple[str, ...], problems: tuple[Problem, ...]) -> Run:
    names, keys = set(variants), {p.key for p in problems}
    results = tuple(r for r in run.results if r.variant in names and r.problem.key in keys)
    used = {digest for result in results for digest in digests(result.code)}
    return msgspec.structs.replace(
        run,
        plan=msgspec.structs.replace(run.plan, problems=problems, variants=variants),
        results=results,
        code=msgspec.UNSET if not run.code else tuple(content for content in run.code if content.digest in used),
    )
