// CUDA C++ kernels of `dropout`. ELEMENT is float, __half or __nv_bfloat16.
#include "conversions.cuh"
#include "one_element.cuh"

// Philox 4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011): a keyed function of a
// counter, so that each vector's numbers follow from its index alone.
__device__ __forceinline__ uint4 philox(unsigned long long index, unsigned long long seed) {
    uint4 c = make_uint4((unsigned)index, (unsigned)(index >> 32), 0u, 0u);
    unsigned low = (unsigned)seed, high = (unsigned)(seed >> 32);
#pragma unroll
    for (int round = 0; round < 10; ++round) {
        const unsigned long long p = 0xD2511F53ull * c.x, q = 0xCD9E8D57ull * c.z;
        c = make_uint4((unsigned)(q >> 32) ^ c.y ^ low, (unsigned)q, (unsigned)(p >> 32) ^ c.w ^ high, (unsigned)p);
        low += 0x9E3779B9u;
        high += 0xBB67AE85u;
    }
    return c;
}

// 1. An element a thread, which takes 32 of the 128 bits of a call. Few elements take the latency of one load and of one call, which needs no data
// and so runs while the element is loaded.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS) dropout_scalar(
    const ELEMENT* __restrict__ x, ELEMENT* __restrict__ out, INDEX last, unsigned threshold, float scale,
    unsigned long long seed) {
    const INDEX i = element_of_thread(last);
    const float v = to_float(x[i]);
    out[i] = from_float<ELEMENT>(philox(i, seed).x < threshold ? 0.0f : v * scale);
}

// 2. One call gives 128 random bits, as many as a vector has: 32 an element of fp32, 16 of the others. An element is dropped when its
// number is below `threshold`, p times 2^32; for 16-bit numbers only its upper half counts.
__device__ __forceinline__ Vec16<ELEMENT> dropped(const Vec16<ELEMENT>& vector, const uint4& random, unsigned threshold, float scale) {
    constexpr int WIDTH = Vec16<ELEMENT>::WIDTH;
    const unsigned numbers[4] = {random.x, random.y, random.z, random.w};
    float v[WIDTH];
    widen(vector, v);
#pragma unroll
    for (int j = 0; j < WIDTH; ++j) {
        bool drop;
        if constexpr (sizeof(ELEMENT) == 4) {
            drop = numbers[j] < threshold;
        } else {
            const unsigned shifted = j % 2 ? numbers[j / 2] : numbers[j / 2] << 16;
            drop = shifted < (threshold & 0xffff0000u);
        }
        v[j] = drop ? 0.0f : v[j] * scale;
    }
    return narrow<ELEMENT>(v);
}

extern "C" __global__ void __launch_bounds__(128) dropout_vec16(
    const ELEMENT* __restrict__ x, ELEMENT* __restrict__ out, long long n, unsigned threshold, float scale,
    unsigned long long seed) {
    // Two loads in flight hide the arithmetic of eight elements a vector better than one: 2^28 in bf16 at 4271 instead of 4119 GB/s
    // on an H200. For fp32 one is enough (4315).
    constexpr int VECTORS = sizeof(ELEMENT) == 4 ? 1 : 2;
    constexpr int WIDTH = Vec16<ELEMENT>::WIDTH;
    // The elements after the last whole vector are the start of one more, which the next thread loads one by one.
    const long long vectors = n / WIDTH, all = vectors + (n % WIDTH != 0);
    const long long first = (long long)blockIdx.x * (128 * VECTORS) + threadIdx.x;
    Vec16<ELEMENT> loaded[VECTORS];
#pragma unroll
    for (int k = 0; k < VECTORS; ++k) {
        const long long i = first + k * 128;
        if (i < vectors) {
            loaded[k] = load_vec16(reinterpret_cast<const Vec16<ELEMENT>*>(x) + i);
        } else if (i < all) {
#pragma unroll
            for (int j = 0; j < WIDTH; ++j) {
                loaded[k].e[j] = i * WIDTH + j < n ? x[i * WIDTH + j] : from_float<ELEMENT>(0.0f);
            }
        }
    }
#pragma unroll
    for (int k = 0; k < VECTORS; ++k) {
        const long long i = first + k * 128;
        // Needs no data, so it is computed while the loads are in flight.
        const uint4 random = philox(i, seed);
        const Vec16<ELEMENT> result = dropped(loaded[k], random, threshold, scale);
        if (i < vectors) {
            store_vec16(reinterpret_cast<Vec16<ELEMENT>*>(out) + i, result);
        } else if (i < all) {
#pragma unroll
            for (int j = 0; j < WIDTH; ++j) {
                if (i * WIDTH + j < n) {
                    out[i * WIDTH + j] = result.e[j];
                }
            }
        }
    }
}
