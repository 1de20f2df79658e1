// Votes of a warp.
#pragma once

// The lanes for which it holds, a bit each. All lanes of the warp call it.
__device__ __forceinline__ unsigned lanes_with(bool holds) { return __ballot_sync(0xffffffffu, holds); }

// The number of the lowest bit that is set; there must be one.
__device__ __forceinline__ int lowest_bit(unsigned bits) { return __ffs(bits) - 1; }
