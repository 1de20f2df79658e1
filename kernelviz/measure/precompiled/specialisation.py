"""What a kernel of Triton was compiled from, as a digest that is the same for different versions of Triton."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from kernelviz.measure.compiled_code.triton_kernels import source_of

_OPTIONS = (
    "num_warps",
    "num_ctas",
    "num_stages",
    "maxnreg",
    "enable_fp_fusion",
    "launch_cooperative_grid",
    "launch_pdl",
    "default_dot_input_precision",
)
"""The options of a compilation that every supported version has and that change the machine code."""


def specialisation(
    function: Any,
    signature: Mapping[str, str],
    constants: Mapping[Any, Any],
    attributes: Mapping[Any, Any],
    options: Any,
) -> str:
    """SHA-256 (hex) of the function's source with that of the functions it calls, the types of its arguments, its constants, what
    is known about its arguments (multiples of 16), and the options.

    The arguments are those of `JITFunction._do_compile` of Triton 3.6 and 3.7.
    """
    compiled = (
        function.fn.__qualname__,
        source_of(function),
        sorted(signature.items()),
        sorted((str(path), _constant(value)) for path, value in constants.items()),
        # 3.6 lists constants here too, without an attribute.
        sorted((str(path), repr(known)) for path, known in attributes.items() if known),
        [(name, repr(getattr(options, name, None))) for name in _OPTIONS],
    )
    return hashlib.sha256(repr(compiled).encode()).hexdigest()


def _constant(value: Any) -> str:
    """The value of a constant, without what depends on the process or on Triton's version."""
    function = getattr(value, "fn", None)
    if function is not None:
        return str(function.__qualname__)
    if type(value).__name__ == "constexpr":
        return _constant(value.value)
    if isinstance(value, tuple):
        return repr(tuple(_constant(one) for one in value))
    return str(value)
