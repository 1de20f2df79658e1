"""The compositions that a fused chain replaces."""

from __future__ import annotations

from dataclasses import replace

from kernelviz.core.fusion import Step
from kernelviz.ops.catalog.fusion import Composition, Fusion, WorkSweep, elementwise_step
from kernelviz.ops.catalog.tensors import Sizes


def eager_steps(sizes: Sizes, itemsize_bytes: int) -> tuple[Step, ...]:
    """Product, sum and relu of each step of the chain, each of which reads and writes all of x. The factor and the summand of
    a step are rows in `pointwise_chain`, and numbers in the other op.

    >>> from kernelviz.core.fusion import unfused_bytes
    >>> unfused_bytes(eager_steps({"m": 32768, "n": 4096, "k": 4}, 2))
    6442516480
    """
    elements, operand_bytes = _elements(sizes), _operand_bytes(sizes, itemsize_bytes)
    product = elementwise_step("product", elements, itemsize_bytes, flop=1, operand_bytes=operand_bytes)
    total = elementwise_step("sum", elements, itemsize_bytes, flop=1, operand_bytes=operand_bytes)
    relu = elementwise_step("relu", elements, itemsize_bytes, flop=1)
    return _with_last((product, total, relu) * sizes["k"])


def stepwise_steps(sizes: Sizes, itemsize_bytes: int) -> tuple[Step, ...]:
    """One kernel for each step of the chain.

    >>> len(stepwise_steps({"n": 1024, "k": 4}, 2))
    4
    """
    operand_bytes = 2 * _operand_bytes(sizes, itemsize_bytes)
    step = elementwise_step("chain_step", _elements(sizes), itemsize_bytes, flop=3, operand_bytes=operand_bytes)
    return _with_last((step,) * sizes["k"])


def _elements(sizes: Sizes) -> int:
    return sizes["n"] * sizes.get("m", 1)


def _operand_bytes(sizes: Sizes, itemsize_bytes: int) -> int:
    return itemsize_bytes * (sizes["n"] if "m" in sizes else 1)


def _with_last(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    return (*steps[:-1], replace(steps[-1], result_bytes=0))


_WORK = WorkSweep(axis="k", sizes=(2, 8, 16), cpu_sizes=(2, 4, 8))
ROWS = Fusion(
    family="pointwise",
    compositions=(
        Composition(variants=("torch_eager",), steps=eager_steps),
        Composition(variants=("cuda_stepwise",), steps=stepwise_steps),
    ),
    fused=("torch_compile", "triton_fused", "cuda_fused", "cuda_fused_packed"),
    grows="m",
    sizes={"m": 256, "n": 4096, "k": 4},
    cpu_sizes={"m": 4096, "n": 1024, "k": 4},
    work=_WORK,
)
SCALARS = Fusion(
    family="pointwise",
    compositions=(
        Composition(variants=("torch_eager",), steps=eager_steps),
        Composition(variants=("cuda_scalars_stepwise",), steps=stepwise_steps),
    ),
    fused=("torch_compile", "triton_scalars_fused", "cuda_scalars_fused", "cuda_scalars_packed"),
    grows="n",
    sizes={"n": 2**20, "k": 4},
    cpu_sizes={"n": 2**22, "k": 4},
    work=_WORK,
)
