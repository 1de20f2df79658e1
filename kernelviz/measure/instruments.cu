// The instrument's own kernels. Their names delimit the iterations in a trace, so nothing else may use them.
// Each may store its SM's cycle counter: cycles between two of them over the tracer's time is the SM clock.

__device__ __forceinline__ unsigned sm_id() {
    unsigned id;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(id));
    return id;
}

__device__ __forceinline__ void store_clock(long long* cycles) {
    if (cycles != nullptr && threadIdx.x == 0) {
        cycles[sm_id()] = clock64();
    }
}

// Reads `count` 16-byte words and writes nothing: clean lines cost the next kernel no write-back.
// `guard` never equals the sum of the buffer, so the loads cannot be removed and the store never happens.
extern "C" __global__ void __launch_bounds__(512) kernelviz_flush_l2(
    const uint4* __restrict__ words, long long count, unsigned guard, unsigned* sink, long long* cycles) {
    unsigned sum = 0;
    const long long step = (long long)gridDim.x * blockDim.x;
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    for (; i + 3 * step < count; i += 4 * step) {
        const uint4 a = words[i], b = words[i + step], c = words[i + 2 * step], d = words[i + 3 * step];
        sum |= a.x | b.y | c.z | d.w;
    }
    for (; i < count; i += step) {
        sum |= words[i].x;
    }
    if (sum == guard) {
        *sink = sum;
    }
    __syncthreads();
    store_clock(cycles);
}

extern "C" __global__ void kernelviz_end_marker(long long* cycles) { store_clock(cycles); }

// Fills `count` bytes with 0xFF (a NaN in every float format): what the call does not write stays visible.
extern "C" __global__ void __launch_bounds__(512) kernelviz_poison(unsigned char* bytes, long long count) {
    const long long step = (long long)gridDim.x * blockDim.x;
    const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    const bool aligned = (reinterpret_cast<unsigned long long>(bytes) & 15) == 0;
    const long long words = aligned ? count / 16 : 0;
    const uint4 ones = make_uint4(~0u, ~0u, ~0u, ~0u);
    for (long long i = first; i < words; i += step) {
        reinterpret_cast<uint4*>(bytes)[i] = ones;
    }
    for (long long i = words * 16 + first; i < count; i += step) {
        bytes[i] = 0xFF;
    }
}

extern "C" __global__ void kernelviz_empty() {}

// A stream that reads R and writes W arrays of 16-byte words: the measured roof of that mix. A block takes U x 512 words
// that lie together, so that DRAM pages are opened once; STREAMING asks the caches to keep nothing.
template <int R, int W, int U, bool STREAMING>
__device__ __forceinline__ void stream(const uint4* in, uint4* out, long long count, unsigned guard) {
    const long long first = (long long)blockIdx.x * (blockDim.x * U) + threadIdx.x;
    uint4 v[U];
#pragma unroll
    for (int u = 0; u < U; ++u) {
        v[u] = make_uint4(guard, guard, guard, guard);
#pragma unroll
        for (int r = 0; r < R; ++r) {
            const long long i = first + (long long)u * blockDim.x;
            if (i < count) {
                const uint4* from = in + (long long)r * count + i;
                const uint4 w = STREAMING ? __ldcs(from) : *from;
                v[u].x ^= w.x; v[u].y ^= w.y; v[u].z ^= w.z; v[u].w ^= w.w;
            }
        }
    }
    unsigned kept = 0;
#pragma unroll
    for (int u = 0; u < U; ++u) {
        const long long i = first + (long long)u * blockDim.x;
#pragma unroll
        for (int w = 0; w < W; ++w) {
            if (i < count) {
                uint4* to = out + (long long)w * count + i;
                if (STREAMING) __stcs(to, v[u]); else *to = v[u];
            }
        }
        kept |= v[u].x & v[u].y & v[u].z & v[u].w;
    }
    // Never true for the buffers used (all words are below 2^30), but the compiler cannot know.
    if (W == 0 && kept == 0xFFFFFFFFu) {
        out[0] = v[0];
    }
}
#define STREAM(R, W, U, NAME, STREAMING)                                                                     \
    extern "C" __global__ void __launch_bounds__(512) kernelviz_stream_##R##_##W##_##U##_##NAME(            \
        const uint4* in, uint4* out, long long count, unsigned guard) {                                      \
        stream<R, W, U, STREAMING>(in, out, count, guard);                                                   \
    }
#define STREAMS(R, W)               \
    STREAM(R, W, 1, cached, false)  \
    STREAM(R, W, 4, cached, false)  \
    STREAM(R, W, 1, streaming, true) \
    STREAM(R, W, 4, streaming, true)
STREAMS(1, 0)
STREAMS(2, 1)
STREAMS(1, 1)
STREAMS(1, 2)
STREAMS(0, 1)
