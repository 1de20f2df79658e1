// CUDA C++ kernel of `scatter_add` that adds fp32 sums to numbers of 16 bits and clears the sums. ELEMENT is __half or __nv_bfloat16.
#include "vec16.cuh"

// EACH elements of a thread: 8, or 1 where x starts within a 16-byte vector. AT_ONCE: whether x is read while the sums are. INDEX counts elements.
#ifndef EACH
#define EACH 8
#define AT_ONCE 1
#define INDEX unsigned
#endif
constexpr int CHUNK = EACH < 4 ? EACH : 4, CHUNKS = EACH / CHUNK;

struct alignas(sizeof(ELEMENT) * EACH) Elements {
    ELEMENT of[EACH];
};
struct alignas(sizeof(float) * CHUNK) Chunk {
    float of[CHUNK];
};

// `sums` is zero before the additions of each call and afterwards, so that no launch has to widen x first. A vector of x is left as it is where nothing
// was added: of a large table, of which few rows get additions, only the sums are read. In other vectors, and behind the last one, -0 becomes 0. A sum that is not a number differs from zero.
// A sum of -0 is left, which is zero, too.
extern "C" __global__ void __launch_bounds__(256) scatter_finish(ELEMENT* x, float* sums, INDEX count) {
    const INDEX i = (INDEX)blockIdx.x * 256 + threadIdx.x, whole = count / EACH;
    if (i >= whole) {
        // The elements behind the last vector, one a thread.
        const INDEX at = whole * EACH + (i - whole);
        if (at < count) {
            x[at] = from_float<ELEMENT>(to_float(x[at]) + sums[at]);
            sums[at] = 0.0f;
        }
        return;
    }
    Elements* to = reinterpret_cast<Elements*>(x) + i;
    Chunk* from = reinterpret_cast<Chunk*>(sums) + i * CHUNKS;
    Chunk chunks[CHUNKS];
    Elements elements;
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
        chunks[c] = from[c];
    }
    if (AT_ONCE) {
        elements = *to;
    }
    bool any = false;
#pragma unroll
    for (int e = 0; e < EACH; ++e) {
        any |= chunks[e / CHUNK].of[e % CHUNK] != 0.0f;
    }
    if (!any) {
        return;
    }
    if (!AT_ONCE) {
        elements = *to;
    }
#pragma unroll
    for (int e = 0; e < EACH; ++e) {
        elements.of[e] = from_float<ELEMENT>(to_float(elements.of[e]) + chunks[e / CHUNK].of[e % CHUNK]);
    }
    *to = elements;
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
        from[c] = Chunk{};
    }
}
