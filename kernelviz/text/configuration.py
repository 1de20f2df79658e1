"""With which configuration a case was measured, in text: one place for every table, caption and line."""

from kernelviz.core import Result
from kernelviz.core.configuration import configuration_text
from kernelviz.metrics.quality import Configured, configured
from kernelviz.text.text import Text

CONFIGURATION_HELP = (
    "What the variant was bound with, where it has something to tune: by its default, or as tuning found it."
)


def describe_configuration(configuration: Configured) -> Text:
    """The values, and where they come from."""
    values = configuration_text(configuration.values)
    if configuration.tuned_by is not None:
        return Text(f"tuned: {values} (run {configuration.tuned_by})")
    return Text(f"configuration: {values}" if configuration.named else f"default configuration: {values}")


def format_configuration(result: Result) -> str:
    """Which configuration a case was measured with, and where it comes from; empty for a variant without one.

    >>> from kernelviz.core.problem import Problem
    >>> from kernelviz.core.result import Timing
    >>> def one(**more): return Result(problem=Problem(op="add", sizes={"n": 1}, dtype="fp32"), outcome=Timing(), **more)
    >>> format_configuration(one(variant="t", configuration={"block": 256, "warps": 4}, tuned_by="r1"))
    'tuned: block=256, warps=4 (run r1)'
    >>> format_configuration(one(variant="t", configuration={"block": 64}))
    'default configuration: block=64'
    >>> format_configuration(one(variant="t[block=64]", configuration={"block": 64})), format_configuration(one(variant="a"))
    ('configuration: block=64', '')
    """
    configuration = configured(result)
    return "" if configuration is None else str(describe_configuration(configuration))
