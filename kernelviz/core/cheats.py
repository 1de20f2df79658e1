"""What a call may not do to look fast. A result that does it is refused with the cheat as the code of its reason."""

from typing import Literal, get_args

from kernelviz.core.reasons import Cheating

Cheat = Literal[
    "other_stream",
    "cached_output",
    "mutated_input",
    "unwritten",
    "stale",
    "lower_precision",
    "recompiled",
    "persisting_l2",
    "unfinished",
    "remembered",
]
CHEATS: tuple[Cheat, ...] = get_args(Cheat)


def cheat_of(reason: Cheating | type[Cheating]) -> Cheat:
    """The cheat that a reason, or a kind of reasons, is about.

    >>> from kernelviz.core.reasons import Unwritten
    >>> cheat_of(Unwritten(elements=3)), cheat_of(Unwritten)
    ('unwritten', 'unwritten')
    """
    kind = reason if isinstance(reason, type) else type(reason)
    cheat: Cheat = kind.__struct_config__.tag  # type: ignore[assignment]
    return cheat
