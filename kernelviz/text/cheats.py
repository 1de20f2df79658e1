"""The cheats in text: what each one does, and why a result that does it is refused."""

from collections.abc import Mapping
from types import MappingProxyType

from kernelviz.core import Cheat
from kernelviz.text.text import Text

NAMES: Mapping[Cheat, Text] = MappingProxyType(
    {
        "other_stream": Text("works on another stream or thread"),
        "cached_output": Text("returns a cached output"),
        "mutated_input": Text("changes an input without declaring it"),
        "unwritten": Text("leaves output unwritten"),
        "stale": Text("answers for inputs of an earlier time"),
        "lower_precision": Text("computes in lower precision than declared"),
        "recompiled": Text("compiles or falls back inside the timed region"),
        "persisting_l2": Text("pins its data in the L2"),
    }
)
"""What the call does, as the end of a sentence."""

EXPLANATIONS: Mapping[Cheat, Text] = MappingProxyType(
    {
        "other_stream": Text(
            "Work that does not wait for the flush, or for which the end marker does not wait, is not in the time."
        ),
        "cached_output": Text(
            "A call that finds its answer by its inputs' addresses launches nothing, or copies what it knew."
        ),
        "mutated_input": Text(
            "The next call would not solve the same problem; a variant that declares the change has its input restored."
        ),
        "unwritten": Text(
            "Outputs are filled with 0xFF bytes before the call; what is still there afterwards was not computed."
        ),
        "stale": Text(
            "The same buffers are filled anew and the timed call is made again: its outputs must follow its inputs."
        ),
        "lower_precision": Text(
            "Errors above the bound of the declared format, and within that of a narrower one, are named so."
        ),
        "recompiled": Text(
            "A call that compiles again, or silently runs eagerly, is not the variant that it claims to be."
        ),
        "persisting_l2": Text(
            "Lines that the flush may not evict would make a cold time a warm one: the device's limit for them is 0."
        ),
    }
)
"""Why it is refused."""
