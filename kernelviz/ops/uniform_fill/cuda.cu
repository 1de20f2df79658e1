// CUDA C++ kernels of `uniform_fill`. ELEMENT is float, __half or __nv_bfloat16; BITS are the random bits of an element (24, 11, 8), and
// ROUNDS those of Philox.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "one_element.cuh"

// Philox 4x32 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011): a keyed function of a counter.
// The authors find that seven rounds pass all statistical tests of BigCrush, and give ten as the default for safety.
__device__ __forceinline__ uint4 philox(unsigned long long index, unsigned long long seed) {
    uint4 c = {(unsigned)index, (unsigned)(index >> 32), 0u, 0u};
    unsigned low = (unsigned)seed, high = (unsigned)(seed >> 32);
#pragma unroll
    for (int round = 0; round < ROUNDS; ++round) {
        const unsigned long long p = 0xD2511F53ull * c.x, q = 0xCD9E8D57ull * c.z;
        c = uint4{(unsigned)(q >> 32) ^ c.y ^ low, (unsigned)q, (unsigned)(p >> 32) ^ c.w ^ high, (unsigned)p};
        low += 0x9E3779B9u;
        high += 0xBB67AE85u;
    }
    return c;
}

// The multiple of 2^-BITS below 1 that these bits count. A number of more bits would be rounded, the largest ones to 1.
__device__ __forceinline__ ELEMENT number(unsigned bits) {
    return static_cast<ELEMENT>(static_cast<float>(bits) * (1.0f / (1 << BITS)));
}

// 1. A call of Philox an element, of whose 128 bits it uses 32.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS) fill_scalar(ELEMENT* __restrict__ out, INDEX last, unsigned long long seed) {
    const INDEX i = element_of_thread(last);
    out[i] = number(philox(i, seed).x >> (32 - BITS));
}

// 2. A call of Philox a thread gives as many elements as 128 bits are enough for: 4 of 32 bits, 8 of 16, or 16 of 8 (bf16): one
// 16-byte vector, or two that lie a block's width apart, so that each store of a warp is whole lines.
constexpr int SLOT = BITS > 16 ? 32 : BITS > 8 ? 16 : 8;  // bits from which an element takes its upper ones
constexpr int WIDTH = 16 / sizeof(ELEMENT), VECTORS = 128 / SLOT / WIDTH;

struct alignas(16) Vector {
    ELEMENT of[WIDTH];
};

extern "C" __global__ void __launch_bounds__(256) fill_vec16(ELEMENT* __restrict__ out, long long n, unsigned long long seed) {
    const long long thread = (long long)blockIdx.x * 256 + threadIdx.x;
    const uint4 random = philox(thread, seed);
    const unsigned words[4] = {random.x, random.y, random.z, random.w};
#pragma unroll
    for (int k = 0; k < VECTORS; ++k) {
        Vector vector;
#pragma unroll
        for (int j = 0; j < WIDTH; ++j) {
            const int slot = k * WIDTH + j;
            const unsigned word = words[slot * SLOT / 32] << (slot * SLOT % 32);
            vector.of[j] = number(word >> (32 - BITS));
        }
        const long long first = ((long long)blockIdx.x * (256 * VECTORS) + k * 256 + threadIdx.x) * WIDTH;
        if (first + WIDTH <= n) {
            *reinterpret_cast<Vector*>(out + first) = vector;
        } else {
            for (int j = 0; j < WIDTH; ++j) {
                if (first + j < n) {
                    out[first + j] = vector.of[j];
                }
            }
        }
    }
}
