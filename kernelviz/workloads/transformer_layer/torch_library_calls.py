"""How many kernels each library call of a compiled layer launches: marks before and behind each of them, in a graph of their own.

Generated code calls libraries through a table of inductor (``extern_kernels``), which it reads at each call.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any


@contextmanager
def between_marks(mark: Callable[[], object]) -> Iterator[None]:
    """Meanwhile, `mark` is called before and behind each call of a function of inductor's table."""
    from torch._inductor.select_algorithm import extern_kernels

    table: dict[str, Any] = vars(extern_kernels)
    own = dict(table)

    def marked(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            mark()
            result = function(*arguments, **named)
            mark()
            return result

        return call

    try:
        table.update({name: marked(function) for name, function in own.items() if callable(function)})
        yield
    finally:
        table.update(own)


def counts_between(marked: Sequence[str], mark: str, kernels: Sequence[str]) -> tuple[int, ...] | None:
    """The number of kernels of each library call. `marked`: the kernels of the layer with those of the marks. None if they are
    not `kernels` with marks in pairs.

    >>> counts_between(["a", "m", "b", "c", "m", "d"], "m", ["a", "b", "c", "d"]), counts_between(["m", "a"], "m", ["a"])
    ((2,), None)
    """
    at = [number for number, name in enumerate(marked) if name == mark]
    if len(at) % 2 or [name for name in marked if name != mark] != list(kernels):
        return None
    return tuple(end - begin - 1 for begin, end in zip(at[::2], at[1::2], strict=True))
