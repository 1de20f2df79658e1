"""The matrix product of CUTLASS (cutlass_gemm.cu), bound to tensors."""

from __future__ import annotations

import ctypes
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from kernelviz.core.errors import KernelvizError
from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels import nvcc
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.tensor_map import require_pitch

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cutlass_gemm.cu"
Function = Literal["identity", "relu", "gelu", "silu"]
"""What the kernel applies to the sum of the product and the bias; with the identity there is no bias."""
_FUNCTIONS: tuple[Function, ...] = ("identity", "relu", "gelu", "silu")


class CutlassRefused(KernelvizError):
    """CUTLASS or the CUDA runtime refuses the product; the message is theirs."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """The definitions of cutlass_gemm.cu, which explains them. `swizzle` and `along_n` are no definitions but arguments."""

    tile_m: int = 128
    tile_n: int = 256
    tile_k: int = 64
    cluster_m: int = 2
    cluster_n: int = 1
    pingpong: int = 0
    swizzle: int = 1
    along_n: int = -1

    def defines(self, element: str, function: Function, *, b_k_contiguous: bool) -> dict[str, str]:
        """The macros, for elements of this C++ type."""
        return {
            "ELEMENT": element,
            "TILE_M": str(self.tile_m),
            "TILE_N": str(self.tile_n),
            "TILE_K": str(self.tile_k),
            "CLUSTER_M": str(self.cluster_m),
            "CLUSTER_N": str(self.cluster_n),
            "PINGPONG": str(self.pingpong),
            "B_K_CONTIGUOUS": str(int(b_k_contiguous)),
            "FUNCTION": str(_FUNCTIONS.index(function)),
        }


def bind(a_MK: Tensor, b_KN: Tensor, options: Options) -> Launch:
    """The product of contiguous matrices (M, K) and (K, N) of bf16 or fp16.

    Errors: BadField for matrices that are not contiguous, or whose rows are no multiples of 16 bytes; CompilationError,
    CutlassRefused.
    """
    require_contiguous(a_MK=a_MK, b_KN=b_KN)
    require_pitch("k", a_MK.shape[1], a_MK.element_size())
    require_pitch("n", b_KN.shape[1], b_KN.element_size())
    return _bind(a_MK, b_KN, None, b_KN.shape[1], options, "identity", b_k_contiguous=False)


def bind_linear(x_MK: Tensor, w_NK: Tensor, b_N: Tensor, options: Options, function: Function) -> Launch:
    """f(x wᵀ + b) of contiguous x (M, K) and w (N, K) of bf16 or fp16 and b (N,). Errors: as `bind`."""
    require_contiguous(x_MK=x_MK, w_NK=w_NK, b_N=b_N)
    require_pitch("k", x_MK.shape[1], x_MK.element_size())
    require_pitch("n", w_NK.shape[0], w_NK.element_size())
    return _bind(x_MK, w_NK, b_N, w_NK.shape[0], options, function, b_k_contiguous=True)


def _bind(
    a_MK: Tensor,
    b: Tensor,
    bias_N: Tensor | None,
    n: int,
    options: Options,
    function: Function,
    *,
    b_k_contiguous: bool,
) -> Launch:
    """`b`: (K, N), or (N, K) if `b_k_contiguous`."""
    import torch

    m, k = a_MK.shape
    d_MN = torch.empty((m, n), dtype=a_MK.dtype, device=a_MK.device)
    element = {torch.bfloat16: "cutlass::bfloat16_t", torch.float16: "cutlass::half_t"}[a_MK.dtype]
    defines = options.defines(element, function, b_k_contiguous=b_k_contiguous)
    library = nvcc.load(SOURCE, defines, (nvcc.cutlass_headers(),))
    product = _Product(library)
    pointers = [None if t is None else t.data_ptr() for t in (a_MK, b, bias_N, d_MN)]
    product.bind(pointers, (m, n, k), a_MK.device.index or 0, options)

    def launch() -> Tensor:
        product.launch(nvcc.stream())
        return d_MN

    return launch


class _Product:
    """A product of CUTLASS that is bound to addresses: its library's functions with their types, and what they share."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self._bound = ctypes.c_void_p()
        self._bind, self._launch = library.kernelviz_bind, library.kernelviz_launch
        for function in (self._bind, self._launch):
            function.restype = ctypes.c_char_p

    def bind(self, pointers: list[int | None], sizes: tuple[int, int, int], device: int, options: Options) -> None:
        """`pointers`: of a, b, the bias (None: there is none) and the result. Errors: CutlassRefused."""
        error = self._bind(
            ctypes.byref(self._bound),
            *(ctypes.c_void_p(pointer) for pointer in pointers),
            *(ctypes.c_int(number) for number in (*sizes, device, options.swizzle, options.along_n)),
        )
        _require_no(error)
        weakref.finalize(self, self._library.kernelviz_release, self._bound)

    def launch(self, stream: int) -> None:
        """Enqueue the product on a stream. Errors: CutlassRefused."""
        _require_no(self._launch(self._bound, ctypes.c_void_p(stream)))


def _require_no(error: bytes) -> None:
    if error:
        raise CutlassRefused(f"CUTLASS does not run this product: {error.decode(errors='replace')}")
