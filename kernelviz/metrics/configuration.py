"""With which configuration a case was measured, in words: one place for every table, caption and line of text."""

from __future__ import annotations

from kernelviz.core.configuration import base_name, configuration_text
from kernelviz.core.result import Result

CONFIGURATION_HELP = (
    "What the variant was bound with, where it has something to tune: by its default, or as tuning found it."
)


def configuration_words(result: Result) -> str:
    """Which configuration a case was measured with, and where it comes from; empty for a variant without one.

    >>> from kernelviz.core.problem import Problem
    >>> from kernelviz.core.result import Timing
    >>> def one(**more): return Result(problem=Problem(op="add", sizes={"n": 1}, dtype="fp32"), outcome=Timing(), **more)
    >>> configuration_words(one(variant="t", configuration={"block": 256, "warps": 4}, tuned_by="r1"))
    'tuned: block=256, warps=4 (run r1)'
    >>> configuration_words(one(variant="t", configuration={"block": 64}))
    'default configuration: block=64'
    >>> configuration_words(one(variant="t[block=64]", configuration={"block": 64})), configuration_words(one(variant="a"))
    ('configuration: block=64', '')
    """
    if not result.configuration:
        return ""
    values = configuration_text(result.configuration)
    if result.tuned_by is not None:
        return f"tuned: {values} (run {result.tuned_by})"
    return f"configuration: {values}" if is_configuration(result.variant) else f"default configuration: {values}"


def is_configuration(variant: str) -> bool:
    """Whether a name says a configuration.

    >>> is_configuration("triton_tuned[block=256]"), is_configuration("torch_eager")
    (True, False)
    """
    return base_name(variant) != variant
