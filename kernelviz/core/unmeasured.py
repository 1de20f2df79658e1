"""Why the rule of an op alone chooses a variant, and no measurement."""

from typing import Literal

Unmeasured = Literal["not_asked", "one_candidate", "none_right", "not_finished", "tried_before"]
"""Nobody asked for a measurement; there is one candidate only; no candidate gave a right result; the run was cancelled, or
something failed that may succeed another time; the same for a problem that this process has tried."""
