"""The variants of attention by torch and the libraries that it calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch, Variant, variant

if TYPE_CHECKING:
    from torch import Tensor


def torch_variants(*, causal: bool) -> tuple[Variant, ...]:
    """Step by step, and by libraries."""

    def composite_backward(q_BSHD: Tensor, k_BSHD: Tensor, v_BSHD: Tensor, do_BSHD: Tensor) -> Launch:
        from kernelviz.ops.attention.torch import backward_pass, causal_composite, full_composite

        return backward_pass(causal_composite if causal else full_composite, q_BSHD, k_BSHD, v_BSHD, do_BSHD)

    @variant(backend="torch", backward=composite_backward)
    def composite_eager(q_BSHD: Tensor, k_BSHD: Tensor, v_BSHD: Tensor) -> Launch:
        """Product, softmax, product: all scores go to memory and come back."""
        from kernelviz.ops.attention.torch import composite

        return lambda: composite(q_BSHD, k_BSHD, v_BSHD, causal=causal)

    def eager_backward(q_BSHD: Tensor, k_BSHD: Tensor, v_BSHD: Tensor, do_BSHD: Tensor) -> Launch:
        from functools import partial

        from kernelviz.ops.attention.torch import backward_pass, scaled_dot_product

        return backward_pass(partial(scaled_dot_product, causal=causal), q_BSHD, k_BSHD, v_BSHD, do_BSHD)

    @variant(backend="torch", backward=eager_backward)
    def torch_eager(q_BSHD: Tensor, k_BSHD: Tensor, v_BSHD: Tensor) -> Launch:
        """scaled_dot_product_attention, with the library that torch chooses."""
        from kernelviz.ops.attention.torch import scaled_dot_product

        return lambda: scaled_dot_product(q_BSHD, k_BSHD, v_BSHD, causal=causal)

    def compile_backward(q_BSHD: Tensor, k_BSHD: Tensor, v_BSHD: Tensor, do_BSHD: Tensor) -> Launch:
        from kernelviz.ops.attention.torch import causal_composite, contiguous, full_composite
        from kernelviz.ops.kernels.inductor import compiled_backward

        function = causal_composite if causal else full_composite
        return contiguous(compiled_backward(function, (q_BSHD, k_BSHD, v_BSHD), (do_BSHD,), (0, 1, 2)))

    @variant(backend="inductor", needs=("inductor",), slow_compile=True, backward=compile_backward)
    def torch_compile(q_BSHD: Tensor, k_BSHD: Tensor, v_BSHD: Tensor) -> Launch:
        """torch.compile of the single steps, in which inductor recognises attention for some sizes."""
        from kernelviz.ops.attention.torch import causal_composite, full_composite
        from kernelviz.ops.kernels.inductor import compiled

        return compiled(causal_composite if causal else full_composite, q_BSHD, k_BSHD, v_BSHD)

    def flash_backward(q_BSHD: Tensor, k_BSHD: Tensor, v_BSHD: Tensor, do_BSHD: Tensor) -> Launch:
        from torch.nn.attention import SDPBackend

        from kernelviz.ops.attention.torch import bind_library_backward

        return bind_library_backward(q_BSHD, k_BSHD, v_BSHD, do_BSHD, SDPBackend.FLASH_ATTENTION, causal=causal)

    @variant(backend="torch", needs=("cuda",), backward=flash_backward)
    def sdpa_flash(q_BSHD: Tensor, k_BSHD: Tensor, v_BSHD: Tensor) -> Launch:
        """scaled_dot_product_attention by FlashAttention-2, which is written for Ampere."""
        from torch.nn.attention import SDPBackend

        from kernelviz.ops.attention.torch import bind_library

        return bind_library(q_BSHD, k_BSHD, v_BSHD, SDPBackend.FLASH_ATTENTION, causal=causal)

    def cudnn_backward(q_BSHD: Tensor, k_BSHD: Tensor, v_BSHD: Tensor, do_BSHD: Tensor) -> Launch:
        from torch.nn.attention import SDPBackend

        from kernelviz.ops.attention.torch import bind_library_backward

        return bind_library_backward(q_BSHD, k_BSHD, v_BSHD, do_BSHD, SDPBackend.CUDNN_ATTENTION, causal=causal)

    @variant(backend="torch", needs=("cuda",), backward=cudnn_backward)
    def sdpa_cudnn(q_BSHD: Tensor, k_BSHD: Tensor, v_BSHD: Tensor) -> Launch:
        """scaled_dot_product_attention by cuDNN."""
        from torch.nn.attention import SDPBackend

        from kernelviz.ops.attention.torch import bind_library

        return bind_library(q_BSHD, k_BSHD, v_BSHD, SDPBackend.CUDNN_ATTENTION, causal=causal)

    return (composite_eager, torch_eager, torch_compile, sdpa_flash, sdpa_cudnn)
