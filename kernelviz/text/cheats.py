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
            "Such work can run before the flush or after the end marker, so it is missing in the measured time."
        ),
        "cached_output": Text(
            "A call that recognises the addresses of its inputs can return a stored result instead of computing it."
        ),
        "mutated_input": Text(
            "The next call would get other inputs. If a variant declares the change, its input is restored before each call."
        ),
        "unwritten": Text(
            "Outputs are filled with 0xFF bytes before the call. Elements that still hold them were not computed."
        ),
        "stale": Text(
            "The timed call is repeated with other inputs in the same buffers, and must return their outputs."
        ),
        "lower_precision": Text(
            "The errors are too large for the declared number format, and typical of a narrower one."
        ),
        "recompiled": Text(
            "A call that compiles again, or falls back to eager mode, does not measure the compiled variant."
        ),
        "persisting_l2": Text(
            "The flush cannot evict persisting L2 lines, so a cold time would be a warm one. The limit for such lines must be 0."
        ),
    }
)
"""Why it is refused."""
