"""Why the rule of an op alone chooses a variant, in text."""

from kernelviz.core.unmeasured import Unmeasured
from kernelviz.text.text import Text

_REASONS: dict[Unmeasured, str] = {
    "not_asked": "no run of the rule's first variants is stored, and no measurement was asked for",
    "one_candidate": "only one own variant solves the problem here",
    "none_right": "none of the rule's first variants gave a right result; the run says why",
    "not_finished": "the run of the rule's first variants did not finish, or one of them ran out of memory or time",
    "tried_before": "an earlier attempt of this process failed; start a new one to try again",
}


def describe_unmeasured(reason: Unmeasured) -> Text:
    """
    >>> print(describe_unmeasured("one_candidate"))
    only one own variant solves the problem here
    """
    return Text(_REASONS[reason])
