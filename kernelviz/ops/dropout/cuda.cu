// CUDA C++ kernel of `dropout`. ELEMENT is float, __half or __nv_bfloat16.
#include "lanes.cuh"

// Philox 4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011): a keyed function of a
// counter, so that each word's numbers follow from its index alone.
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

// One call gives 128 random bits, as many as a word has: 32 an element of fp32, 16 of the others. An element is dropped when its
// number is below `threshold`, p times 2^32; of 16 bits only the upper half of it counts.
__device__ __forceinline__ Word<ELEMENT> dropped(const Word<ELEMENT>& word, const uint4& random, unsigned threshold, float scale) {
    constexpr int WIDTH = Word<ELEMENT>::WIDTH;
    const unsigned numbers[4] = {random.x, random.y, random.z, random.w};
    float v[WIDTH];
    widen(word, v);
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

extern "C" __global__ void __launch_bounds__(128) dropout_words(
    const ELEMENT* __restrict__ x, ELEMENT* __restrict__ out, long long n, unsigned threshold, float scale,
    unsigned long long seed) {
    // Two loads on their way hide the arithmetic of eight elements a word better than one: 2^28 in bf16 at 4271 instead of 4119 GB/s
    // on an H200. Of fp32 one is enough (4315).
    constexpr int WORDS = sizeof(ELEMENT) == 4 ? 1 : 2;
    constexpr int WIDTH = Word<ELEMENT>::WIDTH;
    const long long words = n / WIDTH;
    const long long first = (long long)blockIdx.x * (128 * WORDS) + threadIdx.x;
    Word<ELEMENT> held[WORDS];
#pragma unroll
    for (int k = 0; k < WORDS; ++k) {
        if (first + k * 128 < words) {
            held[k] = load_word(reinterpret_cast<const Word<ELEMENT>*>(x) + first + k * 128);
        }
    }
#pragma unroll
    for (int k = 0; k < WORDS; ++k) {
        const long long i = first + k * 128;
        // Needs no data, so it is computed while the loads are under way.
        const uint4 random = philox(i, seed);
        if (i < words) {
            store_word(reinterpret_cast<Word<ELEMENT>*>(out) + i, dropped(held[k], random, threshold, scale));
        }
    }
    // The elements behind the last whole word are the start of one more, by the first thread of the grid.
    if (first == 0 && words * WIDTH < n) {
        Word<ELEMENT> rest;
        for (int j = 0; j < WIDTH; ++j) {
            rest.e[j] = words * WIDTH + j < n ? x[words * WIDTH + j] : from_float<ELEMENT>(0.0f);
        }
        rest = dropped(rest, philox(words, seed), threshold, scale);
        for (int j = 0; j < WIDTH; ++j) {
            if (words * WIDTH + j < n) {
                out[words * WIDTH + j] = rest.e[j];
            }
        }
    }
}
