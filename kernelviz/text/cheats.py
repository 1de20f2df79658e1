"""Text of the cheats: what the call does, and why such a result is refused."""

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
        "stale": Text("returns outputs for earlier inputs"),
        "lower_precision": Text("computes in lower precision than declared"),
        "recompiled": Text("compiles or falls back inside the timed region"),
        "persisting_l2": Text("pins its data in the L2"),
        "unfinished": Text("works on after it has returned"),
        "remembered": Text("remembers its answers"),
    }
)
"""What the call does, as the predicate of a sentence."""

EXPLANATIONS: Mapping[Cheat, Text] = MappingProxyType(
    {
        "other_stream": Text(
            "The time does not contain work that starts before the flush ends, or that the end marker does not wait for."
        ),
        "cached_output": Text(
            "The call recognises the addresses of its inputs. It then launches nothing, or only copies an earlier output."
        ),
        "mutated_input": Text(
            "The next call would solve another problem. If a variant declares the change, its input is restored before a call."
        ),
        "unwritten": Text(
            "Outputs are filled with 0xFF bytes before the call. Elements that still contain them were not computed. On a "
            "CPU, a sample of the outputs of every timed call is examined."
        ),
        "stale": Text(
            "The input buffers are filled with new values and the timed call is repeated. Its outputs must change with them."
        ),
        "lower_precision": Text(
            "The errors are above the tolerance of the declared number format, but within that of a narrower one."
        ),
        "recompiled": Text(
            "A call that compiles again, or silently falls back to eager execution, is not the variant that it claims to be."
        ),
        "persisting_l2": Text(
            "On a GPU: the flush cannot evict persisting lines, so a cold time would be a warm one. kernelviz sets the device's "
            "limit for them to 0."
        ),
        "unfinished": Text(
            "On a CPU, outputs are copied when the call returns and compared a little later, because the time does not "
            "contain what another thread does after that."
        ),
        "remembered": Text(
            "On a CPU, the call is timed with new numbers and again with the same numbers. It is rejected if even the "
            "fastest call with new numbers takes twice as long as the median with the same numbers (three times below 0.2 ms), "
            "in each of two series."
        ),
    }
)
"""Why a result of such a call is refused."""
