"""What fusing is: the families of compositions, and the steps of a composition that one kernel can replace."""

from dataclasses import dataclass
from typing import Literal

from kernelviz.core.problem import Cost

FusionFamily = Literal[
    "pointwise",
    "linear_activation",
    "conv_bias_activation",
    "norm_activation",
    "transpose_matmul",
    "reshape_elementwise",
]
"""The kinds of fusion that the sources name (Operation fusion, 2025-05-31: "Types of Operation Fusion")."""

StepKind = Literal[
    "product",
    "sum",
    "difference",
    "square",
    "mean",
    "relu",
    "gelu",
    "silu",
    "chain_step",
    "matrix_product",
    "matrix_product_with_bias",
    "convolution",
    "bias",
    "bias_relu",
    "layer_normalisation",
    "batch_normalisation",
    "transposition",
    "to_fp32",
    "from_fp32",
]
"""What a step computes. `kernelviz.text.fusion` names it for people."""
CONTRACTIONS: frozenset[StepKind] = frozenset({"matrix_product", "matrix_product_with_bias", "convolution"})
"""The steps that can use the tensor cores."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One step of a composition that is not fused.

    `cost`: its flop, and the bytes that it reads and writes if each tensor is moved once. `result_bytes`: the size of the tensor
    that it leaves for the next step, so 0 for the last one. `launches`: the number of its kernels.
    """

    kind: StepKind
    cost: Cost
    result_bytes: int = 0
    launches: int = 1

    @property
    def contraction(self) -> bool:
        """Whether the step can use the tensor cores."""
        return self.kind in CONTRACTIONS


def unfused_bytes(steps: tuple[Step, ...]) -> int:
    """The bytes that all steps move.

    >>> cost = Cost(work_flop=8, read_bytes=16, written_bytes=16)
    >>> unfused_bytes((Step(kind="product", cost=cost, result_bytes=16), Step(kind="relu", cost=cost)))
    64
    """
    return sum(step.cost.moved_bytes for step in steps)


def smallest_intermediate_bytes(steps: tuple[Step, ...]) -> int:
    """The size of the smallest tensor between two steps; 0 without one.

    >>> cost = Cost(work_flop=8, read_bytes=16, written_bytes=16)
    >>> smallest_intermediate_bytes((Step(kind="product", cost=cost, result_bytes=16), Step(kind="relu", cost=cost)))
    16
    """
    return min((step.result_bytes for step in steps if step.result_bytes), default=0)
