"""Times that another tool measured: which of them a run has, how each was measured, and whether the run has nothing else."""

from kernelviz.core import Figure, Result, Run


def of_case(result: Result) -> dict[str, Figure]:
    """The times of the case by another tool, by the names in its file; empty for a failure."""
    return {} if result.timing is None else result.timing.other_times


def names(run: Run) -> tuple[str, ...]:
    """The times that any case has, in the order of their first occurrence."""
    return tuple(dict.fromkeys(name for r in run.results for name in of_case(r)))


def alone(run: Run) -> bool:
    """Whether the run has times of another tool only, so that kernelviz measured nothing of it."""
    return bool(names(run)) and not any(r.timing is not None and r.timing.figures for r in run.results)


def methods(run: Run) -> dict[str, tuple[str | None, bool]]:
    """How each time was measured, as text of the file, and whether the text is the same for all cases.

    The text is that of the first case with the time, or None if the file has none.
    """
    all_methods = {
        name: [times[name].method or None for times in map(of_case, run.results) if name in times]
        for name in names(run)
    }
    return {name: (methods[0], len(set(methods)) == 1) for name, methods in all_methods.items()}
