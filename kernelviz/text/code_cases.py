"""What is said of the case that code belongs to: its time, and what it was compiled with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kernelviz.core import Result
from kernelviz.core.code import CompiledCode
from kernelviz.metrics.figures import figure_of
from kernelviz.text.results import format_configuration
from kernelviz.text.text import Text, join, sentence_case
from kernelviz.text.times import format_time


def describe_case_time(result: Result) -> Text:
    """The time that the code takes, with its interval and how it was measured.

    >>> from kernelviz.core import Figure, Problem, Timing
    >>> problem = Problem(op="add", sizes={"n": 1024}, dtype="fp32")
    >>> figure = Figure(estimate=44.6e-6, low=44.5e-6, high=44.7e-6)
    >>> print(describe_case_time(Result(problem=problem, variant="v", outcome=Timing(device_cold_s=figure))))
    44.60 µs ± 0.2 % (device time, cold caches)
    >>> print(describe_case_time(Result(problem=problem, variant="v", outcome=Timing())))
    no correct cold time
    """
    figure = figure_of(result.timing, "cold")
    return Text("no correct cold time") if figure is None else format_time(figure) + " (device time, cold caches)"


def describe_compiled_with(result: Result, kernel: str | None = None) -> Iterator[Text]:
    """The configuration of a case, and the macros and the warps that its code was compiled with, as far as there are any.
    `kernel`: whose macros; None, and a name that no code has: those of all kernels of the case.

    >>> from kernelviz.core import Problem, Timing
    >>> code = CompiledCode(kernel="k", compiler="nvrtc", defines={"COLUMNS": "256", "STAGES": "4"})
    >>> one = Result(problem=Problem(op="add", sizes={"n": 1024}, dtype="fp32"), variant="v", outcome=Timing(), code=(code,),
    ...              configuration={"columns": 0})
    >>> [str(line) for line in describe_compiled_with(one, "k")]
    ['Default configuration: chosen by the sizes.', 'Compiled with COLUMNS=256, STAGES=4.']
    """
    if said := str(format_configuration(result)):
        yield sentence_case(f"{said}.")
    codes = result.code or ()
    named = [code for code in codes if code.kernel == kernel] or codes
    values = dict.fromkeys(_compiled_with(named, result.configuration or {}))
    if values:
        yield Text(f"Compiled with {join(', ', values)}.")


def _compiled_with(codes: Iterable[CompiledCode], stated: Iterable[str]) -> Iterator[str]:
    for code in codes:
        yield from (f"{name}={value}" if value else name for name, value in code.defines.items())
        if code.warps is not None and "warps" not in stated:
            yield f"warps={code.warps}"


def describe_code_cases(results: Iterable[Result]) -> Iterator[Text]:
    """A line for each case: its problem, its time, and what it was compiled with."""
    for result in results:
        yield join(" ", [f"{result.problem.key}: {describe_case_time(result)}.", *describe_compiled_with(result)])
