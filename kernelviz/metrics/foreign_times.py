"""Times that another tool took: which there are, how each was taken, and whether a run has nothing else."""

from kernelviz.core import Figure, Result, Run


def of_case(result: Result) -> dict[str, Figure]:
    """The case's times by another tool, by what people call them; empty for a failure."""
    return {} if result.timing is None else result.timing.other_times


def names(run: Run) -> tuple[str, ...]:
    """The times that any case has, in the order of their first occurrence."""
    return tuple(dict.fromkeys(name for r in run.results for name in of_case(r)))


def alone(run: Run) -> bool:
    """Whether times by another tool are all that the run has: nothing here was measured by kernelviz."""
    return bool(names(run)) and not any(r.timing is not None and r.timing.figures for r in run.results)


def methods(run: Run) -> dict[str, str]:
    """How each time was taken, in the words of its first case; what differs by case (how many calls) is that case's."""
    found: dict[str, list[str]] = {}
    for result in run.results:
        for name, figure in of_case(result).items():
            found.setdefault(name, []).append(figure.method or "it is unknown how it was taken")
    return {n: texts[0] if len(set(texts)) == 1 else f"{texts[0]} (the first case)" for n, texts in found.items()}


NOT_OURS = (
    "These times were taken by another tool, as its file says them: no interval, no check of the result, no cost."
)
"""What stands above them wherever they are shown."""
