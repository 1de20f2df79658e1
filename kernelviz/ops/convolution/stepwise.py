"""A convolution, then bias and relu in one kernel. They show what fusing alone saves."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.sequence import in_sequence

if TYPE_CHECKING:
    from torch import Tensor


def then_bias_relu(convolution: Launch, b_K: Tensor) -> Launch:
    """Bias and relu in CUDA C++. Raises BadField for a bias that is not contiguous."""
    from kernelviz.ops.pointwise_chain.cuda import bind_rows

    return _then(convolution, b_K, bind_rows)


def then_bias_relu_in_triton(convolution: Launch, b_K: Tensor) -> Launch:
    """Bias and relu in Triton. Raises BadField for a bias that is not contiguous."""
    from kernelviz.ops.pointwise_chain.triton import bind_rows

    return _then(convolution, b_K, bind_rows)


def _then(convolution: Launch, b_K: Tensor, bind_rows: Callable[[Tensor, Tensor, Tensor], Launch]) -> Launch:
    """A step of the chain with factors of one: max(y · 1 + b, 0). `bind_rows`: for x (M, N), factors and summands (1, N)."""
    require_contiguous(b_K=b_K)
    ones_1K, b_1K = b_K.new_ones((1, b_K.numel())), b_K.view(1, -1)

    def bind(y_NPQK: Tensor) -> Launch:
        chain, shape = bind_rows(y_NPQK.view(-1, b_K.numel()), ones_1K, b_1K), y_NPQK.shape

        def launch() -> Tensor:
            result = chain()
            assert not isinstance(result, tuple)
            return result.view(shape)

        return launch

    return in_sequence(convolution, bind)
