"""How often something was compiled in this process: inside a timed region it must not happen."""

from __future__ import annotations

import sys
from typing import Any

_triton_compiled = 0


def compilations() -> int:
    """Graphs that torch.compile made and kernels that Triton compiled so far, as far as either is loaded at all."""
    count = _triton_compiled
    dynamo: Any = sys.modules.get("torch._dynamo.utils")
    if dynamo is not None:
        count += int(dynamo.counters["stats"]["unique_graphs"])
    return count


def watch_triton() -> None:
    """Count Triton's compilations from now on (its post-compile hook; a hook of somebody else is called too)."""
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
