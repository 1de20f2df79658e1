"""Two launches one after the other, of which the second one reads what the first one returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch

if TYPE_CHECKING:
    from torch import Tensor


def in_sequence(first: Launch, bind_second: Callable[[Tensor], Launch]) -> Launch:
    """`first`, then what `bind_second` binds to its result. It is bound again if the result is in another place."""
    second: Launch | None = None
    address = 0

    def launch() -> Tensor | tuple[Tensor, ...]:
        nonlocal second, address
        result = first()
        assert not isinstance(result, tuple)
        if second is None or result.data_ptr() != address:
            second, address = bind_second(result), result.data_ptr()
        return second()

    return launch
