"""The plug-in file that `kernelviz compile` writes, and what its variants do when they are bound."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kernelviz.core.problem import Direction
from kernelviz.measure.precompiled.kernels import PrecompiledKernel, decoded, encoded
from kernelviz.measure.precompiled.triton_kernels import Replacement
from kernelviz.ops import Launch, Op, Staged, Variant, op_named

if TYPE_CHECKING:
    from torch import Tensor

_TEXT = '''"""Kernels of {op} for {arch} ({direction}), compiled by {compiler}. `kernelviz compile` wrote this file.

Measure them beside those of the compiler that is installed, at the same sizes and in the same number format:
kernelviz run {op} --with THIS_FILE
"""

from kernelviz.measure.precompiled.plugin import Precompiled
from kernelviz.ops import variant
{functions}

PRECOMPILED = Precompiled(
    """
{kernels}
"""
)
'''
_FUNCTION = '''

@variant({arguments})
def {name}(*inputs{parameters}):
    """{variant} with the machine code of {compiler}"""
    return PRECOMPILED.bind({op!r}, {variant!r}, {direction!r}, inputs{keywords})
'''


def plugin_text(
    op: Op,
    variants: Sequence[Variant],
    kernels: Sequence[PrecompiledKernel],
    *,
    arch: str,
    direction: Direction,
    compiler: str,
) -> str:
    """The Python source of a plug-in with one variant for each of these.

    `compiler`: its name and version for people, for example ``Triton 3.7.1``; variants are named after it.
    """
    functions = "".join(_function(op, one, direction, compiler, arch) for one in variants)
    return _TEXT.format(
        op=op.name, arch=arch, direction=direction, compiler=compiler, functions=functions, kernels=encoded(kernels)
    )


def name_of(variant: str, compiler: str) -> str:
    """The name of a variant of the plug-in.

    >>> name_of("triton_block", "Triton 3.7.1, ptxas 13.0.88")
    'triton_block_by_triton_3_7_1_ptxas_13_0_88'
    """
    return f"{variant}_by_{re.sub(r'[^a-z0-9]+', '_', compiler.lower()).strip('_')}"


def _function(op: Op, variant: Variant, direction: Direction, compiler: str, arch: str) -> str:
    bound = variant.of_backward() if direction == "backward" else variant
    given = [name for name in inspect.signature(bound.bind).parameters if name == "compute" or name in op.axis_names]
    known: dict[str, Any] = {
        "op": op.name,
        "backend": variant.backend,
        "needs": variant.needs,
        "dtypes": variant.dtypes,
        "computes": variant.computes,
        "mutates": variant.mutates,
        "directions": (direction,),
        "targets": (arch,),
    }
    return _FUNCTION.format(
        arguments=", ".join(f"{key}={value!r}" for key, value in known.items() if value not in (None, ())),
        name=name_of(variant.name, compiler),
        parameters="".join(f", {name}" for name in given),
        keywords="".join(f", {name}={name}" for name in given),
        op=op.name,
        variant=variant.name,
        direction=direction,
        compiler=compiler,
    )


class Precompiled:
    """The kernels of a plug-in file."""

    def __init__(self, text: str) -> None:
        """`text`: as `encoded` writes it; it is read when a variant is bound first."""
        self._text = text

    @functools.cached_property
    def _kernels(self) -> Mapping[str, PrecompiledKernel]:
        return decoded(self._text)

    def bind(
        self, op: str, variant: str, direction: Direction, inputs: Sequence[Tensor], **keywords: int | str | None
    ) -> Launch:
        """Bind the catalogue's variant, whose launch then runs the kernels of the file.

        `keywords`: sizes and the compute precision, as the variant takes them. Errors: those of the variant; BadField from bind
        or launch if the file lacks a kernel.
        """
        chosen = op_named(op).variant_named(variant)
        bound = chosen.of_backward() if direction == "backward" else chosen
        parameters = inspect.signature(bound.bind).parameters
        defaults = {key: value for key, value in chosen.default.items() if key in parameters}
        replacement = Replacement(self._kernels)
        with replacement.in_use():
            launch = bound.bind(*inputs, **{**defaults, **keywords})
        if isinstance(launch, Staged):
            return Staged(_within(replacement, launch.forward), _within(replacement, launch.call))
        return _within(replacement, launch)


def _within(replacement: Replacement, call: Callable[[], Any]) -> Callable[[], Any]:
    """The call, with the kernels of the replacement."""

    def replaced() -> Any:
        with replacement.in_use():
            return call()

    return replaced
