"""Parts of one result in text: variant, configuration, correctness."""

from collections.abc import Sequence

from kernelviz.core import Failure, Result, units
from kernelviz.core.configuration import configuration_text
from kernelviz.metrics.quality import Configured, configured
from kernelviz.text.failures import describe_failure, has_description
from kernelviz.text.text import Text

CONFIGURATION_HELP = (
    "What the variant was bound with, where it has something to tune: by its default, or as tuning found it."
)


def format_variant(variant: str) -> str:
    """The name of a variant without underscores.

    >>> format_variant("triton_block")
    'triton block'
    """
    return variant.replace("_", " ").strip() or variant


def describe_configuration(configuration: Configured) -> Text:
    """The values of the parameters, and where they come from."""
    if configuration.tuned_by is None and not configuration.named and not any(configuration.values.values()):
        return Text("default configuration: chosen by the sizes")  # 0 leaves each parameter to the variant
    values = configuration_text(configuration.values)
    if configuration.tuned_by is not None:
        return Text(f"tuned: {values} (run {configuration.tuned_by})")
    return Text(f"{'' if configuration.named else 'default '}configuration: {values}")


def format_configuration(result: Result) -> Text:
    """The configuration that a case was measured with, and where it comes from. Empty for a variant without parameters.

    >>> from kernelviz.core import Problem, Timing
    >>> def one(**more): return Result(problem=Problem(op="add", sizes={"n": 1}, dtype="fp32"), outcome=Timing(), **more)
    >>> print(format_configuration(one(variant="t", configuration={"block": 256, "warps": 4}, tuned_by="r1")))
    tuned: block=256, warps=4 (run r1)
    >>> print(format_configuration(one(variant="t", configuration={"block": 64})))
    default configuration: block=64
    >>> print(format_configuration(one(variant="t[block=64]", configuration={"block": 64})))
    configuration: block=64
    >>> print(format_configuration(one(variant="t", configuration={"heads": 0, "warps": 0})))
    default configuration: chosen by the sizes
    """
    configuration = configured(result)
    return describe_configuration(configuration) if configuration else Text("")


CLOSE_TO_TOLERANCE = 0.9
"""From this share of the tolerance on, a right result looks nearly wrong."""


def describe_close_to_tolerance(results: Sequence[Result]) -> Text:
    """Why the largest error of right results is close to the tolerance; empty if none is.

    >>> from kernelviz.core import Accuracy, Problem, Timing
    >>> close = Accuracy(passed=True, relative_l2=1e-3, max_abs=0.1, worst_of_bound=0.98, seeds=3)
    >>> one = Problem(op="matmul", sizes={"m": 1}, dtype="bf16")
    >>> str(describe_close_to_tolerance([Result(problem=one, variant="v", outcome=Timing(), accuracy=close)]))[:57]
    'Errors of up to 100 % of the tolerance are normal: roundi'
    >>> str(describe_close_to_tolerance([]))
    ''
    """
    checked = (result.accuracy for result in results)
    if not any(a is not None and a.passed and (a.worst_of_bound or 0.0) >= CLOSE_TO_TOLERANCE for a in checked):
        return Text("")
    return Text(
        "Errors of up to 100 % of the tolerance are normal: rounding an exact result to its number format alone can reach 99 % "
        "of it. The tolerance is this rounding, 1 % more, and what the arithmetic of the op adds."
    )


def describe_correctness(result: Result) -> Text:
    """Whether the outputs are right, wrong or not checked, with the largest error relative to the tolerance.

    >>> from kernelviz.core import Accuracy, Problem, Timing
    >>> ok = Accuracy(passed=True, relative_l2=1e-7, max_abs=1e-6, worst_of_bound=0.25, seeds=3)
    >>> one = Problem(op="add", sizes={"n": 1}, dtype="fp32")
    >>> str(describe_correctness(Result(problem=one, variant="v", outcome=Timing(), accuracy=ok)))
    '✓ correct, error 25 % of tolerance (3 seeds)'
    """
    checked = result.accuracy
    if checked is None:
        return Text("✕ failed before the check" if isinstance(result.outcome, Failure) else "not checked")
    share = checked.worst_of_bound
    if checked.passed:
        said = "✓ correct" if share is None else f"✓ correct, {units.share_of_tolerance(share)}"
    elif share is not None:
        said = f"✕ wrong: max error {share:.3g}× tolerance"
    else:
        said = f"✕ wrong: {describe_failure(checked) if has_description(checked) else 'error unknown'}"
    return Text(said + (f" ({units.counted(checked.seeds, 'seed')})" if checked.seeds else ""))
