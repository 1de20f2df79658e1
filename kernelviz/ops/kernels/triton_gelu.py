"""gelu in Triton kernels."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def gelu(x, NARROW: tl.constexpr):
    # gelu(x) = max(x, 0) - a 2^Q(a), a = |x|, as in headers/gelu.cuh, where Q is explained.
    a = tl.minimum(tl.abs(x), 12.0)
    if NARROW:
        q = a * 3.1882464e-05 - 7.5515453e-04
        q = q * a + 8.0197575e-03
        q = q * a - 5.3288851e-02
        q = q * a - 4.5888928e-01
        q = q * a - 1.1511536
        q = q * a - 0.9999988
    else:
        q = a * -2.7709616e-06 + 3.8608167e-05
        q = q * a - 1.8249029e-04
        q = q * a - 1.4600168e-04
        q = q * a + 7.0756334e-03
        q = q * a - 5.2505132e-02
        q = q * a - 4.5920488e-01
        q = q * a - 1.1511058
        q = q * a - 1.0
    return tl.maximum(x, 0.0, propagate_nan=tl.PropagateNan.ALL) - a * tl.exp2(q)
