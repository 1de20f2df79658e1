"""Triton matrix products for the tests of machine code: a persistent one, also with specialised warps."""

import triton
import triton.language as tl


@triton.jit
def persistent_matmul(
    a_ptr,
    b_ptr,
    c_ptr,
    m,
    n,
    k,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    PROGRAMS: tl.constexpr,
    SPECIALISED: tl.constexpr,
):
    a_desc = tl.make_tensor_descriptor(a_ptr, [m, k], [k, 1], [BM, BK])
    b_desc = tl.make_tensor_descriptor(b_ptr, [k, n], [n, 1], [BK, BN])
    c_desc = tl.make_tensor_descriptor(c_ptr, [m, n], [n, 1], [BM, BN])
    across = tl.cdiv(n, BN)
    tiles = tl.cdiv(m, BM) * across
    for tile in tl.range(tl.program_id(0), tiles, PROGRAMS, flatten=False, warp_specialize=SPECIALISED):
        row = tile // across * BM
        column = tile % across * BN
        acc = tl.zeros((BM, BN), tl.float32)
        for step in range(tl.cdiv(k, BK)):
            acc = tl.dot(a_desc.load([row, step * BK]), b_desc.load([step * BK, column]), acc)
        c_desc.store([row, column], acc.to(tl.bfloat16))
