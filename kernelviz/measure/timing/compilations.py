"""Count compilations in this process, because nothing may be compiled inside a timed region."""

import sys
from typing import Any

_triton_compiled = 0


def compilations() -> int:
    """The number of graphs that torch.compile built and kernels that Triton compiled so far."""
    count = _triton_compiled
    dynamo: Any = sys.modules.get("torch._dynamo.utils")
    if dynamo is not None:
        count += int(dynamo.counters["stats"]["unique_graphs"])
    return count


def watch_triton() -> None:
    """Count Triton's compilations from now on by its post-compile hook; an existing hook is still called."""
    try:
        from triton import knobs
    except ImportError:
        return
    runtime: Any = knobs.runtime
    before = getattr(runtime, "jit_post_compile_hook", None)
    if getattr(before, "kernelviz", False):
        return

    def compiled(*arguments: Any, **keywords: Any) -> Any:
        global _triton_compiled
        _triton_compiled += 1
        return before(*arguments, **keywords) if before is not None else None

    compiled.kernelviz = True  # type: ignore[attr-defined]
    runtime.jit_post_compile_hook = compiled
