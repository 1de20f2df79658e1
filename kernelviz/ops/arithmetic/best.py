"""The variant that a user of `add`, `mul` or `div` gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card, row_bytes, triton_vectorises

FEWEST = 2**9
"""H200: from 2 to 512 elements an element a thread takes 1 % less than Triton's blocks of 256. One element is a constant for
Triton: `add` of it takes 0.92 us there, and 0.95 in CUDA C++."""
KNOWN_ELEMENTS = 2**18
"""Up to which a kernel for the size is fastest: an estimate, by the kernels of `torch.compile`, which differ by a branch. H200:
80,648 fp16 take 1.38 us so, 1.47 with a vector a thread and 1.50 in Triton's blocks of 256; 148,548 take 1.49, 1.69 and 1.54."""
SOME_BYTES = 3 * 2**19, 3 * 2**22
"""Of x. H200, fp32: 1,813,927 take 5.86 us with as many vectors a thread as suit the size and 6.05 with one, 461,657 take 2.51
and 2.61; 4,322,640 fp16 take 6.64 and 6.92. Beyond, one vector a thread is faster: 12,953,194 fp32 take 35.6 and 34.0, 7,088,896
bf16 11.09 and 10.46. Quotients take arithmetic, which fewer threads hide less: 1,788,142 fp16 take 4.27 and 4.03."""


def elementwise(problem: Problem, card: Card) -> tuple[str, ...]:
    """An element a thread up to 2^9 elements (one: in Triton), and the kernel for the size up to 2^18; as many vectors a thread
    as suit the size from 1.5 to 12 MiB, but not of quotients; else Triton's blocks of 1024 for multiples of 16 elements, and
    one 16-byte vector a thread of CUDA C++ for others.

    Triton loads no vectors under a mask of another length, unless it knows the length.

    >>> from kernelviz.ops.catalog.best import H200
    >>> lengths = (1, 500, 2**14, 2**20, 2**22, 2**22 + 4)
    >>> [elementwise(Problem(op="add", sizes={"n": n}, dtype="fp32"), H200)[0] for n in lengths]
    ['triton_adaptive', 'cuda_scalar', 'triton_known_size', 'cuda_adaptive', 'triton_block', 'cuda_vec16']
    >>> elementwise(Problem(op="div", sizes={"n": 2**20}, dtype="fp32"), H200)[0]
    'triton_block'
    """
    n = problem.sizes["n"]
    if n <= FEWEST:
        return ("triton_adaptive", "cuda_scalar") if n == 1 else ("cuda_scalar", "triton_adaptive")
    if n <= KNOWN_ELEMENTS:
        return ("triton_known_size", "triton_adaptive", "cuda_scalar")
    if problem.op != "div" and SOME_BYTES[0] < row_bytes(problem) < SOME_BYTES[1]:
        return ("cuda_adaptive", "triton_block")
    return ("triton_block", "cuda_adaptive") if triton_vectorises(n) else ("cuda_vec16", "cuda_adaptive")
