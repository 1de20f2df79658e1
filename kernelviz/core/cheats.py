"""What a call may not do to look fast. Each has a name, with which a result that does it is refused."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

OTHER_STREAM = "works on another stream or thread"
CACHED_OUTPUT = "returns a cached output"
MUTATED_INPUT = "changes an input without declaring it"
UNWRITTEN = "leaves output unwritten"
STALE = "answers for inputs of an earlier time"
LOWER_PRECISION = "computes in lower precision than declared"
RECOMPILED = "compiles or falls back inside the timed region"
PERSISTING_L2 = "pins its data in the L2"

CHEATS: Mapping[str, str] = MappingProxyType(
    {
        OTHER_STREAM: "Work that does not wait for the flush, or for which the end marker does not wait, is not in the time.",
        CACHED_OUTPUT: "A call that finds its answer by its inputs' addresses launches nothing, or copies what it knew.",
        MUTATED_INPUT: "The next call would not solve the same problem; what declares the change has its input restored.",
        UNWRITTEN: "Outputs are filled with 0xFF bytes before the call; what is still there afterwards was not computed.",
        STALE: "The same buffers are filled anew and the timed call is made again: its outputs must follow its inputs.",
        LOWER_PRECISION: "Errors above the bound of the declared format, and within that of a narrower one, are named so.",
        RECOMPILED: "A call that compiles again, or silently runs eagerly, is not the variant that it claims to be.",
        PERSISTING_L2: "Lines that the flush may not evict would make a cold time a warm one: the device's limit for them is 0.",
    }
)
"""Name to the reason why it is refused."""


def refusal(name: str, details: str = "") -> str:
    """The message of a result that is refused for one of them.

    >>> refusal(UNWRITTEN, "3 of 4 elements")
    'leaves output unwritten: 3 of 4 elements'
    """
    return f"{name}: {details}" if details else name
