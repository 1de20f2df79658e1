// Kernels that reach a device's ceilings: streams from memory, streams inside the L2, multiply-adds in registers.

// A stream that reads R and writes W arrays of 16-byte vectors: the measured roof of that mix. A block processes U x 512
// contiguous vectors, so that DRAM pages are opened once; STREAMING uses evict-first loads and stores.
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
    unsigned all_bits = 0;
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
        all_bits |= v[u].x & v[u].y & v[u].z & v[u].w;
    }
    // Never true for these buffers (all values are below 2^30), but the compiler does not know this.
    if (W == 0 && all_bits == 0xFFFFFFFFu) {
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

// The same streams inside the L2. Each thread moves `rounds` x U vectors of a working set of `count` vectors per array, in the
// order of indices, wrapping round, so that launch and tail do not count. The loads bypass the L1 (.cg), which would serve them
// otherwise: 132 L1s of 256 KB hold more than half the L2. Every thread does the same work; rounds x threads x U x (R + W)
// vectors are moved.
__device__ __forceinline__ uint4 load_l2(const uint4* from) {
    uint4 v;
    asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(from));
    return v;
}

__device__ __forceinline__ void store_l2(uint4* to, uint4 v) {
    asm volatile("st.global.cg.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
}

template <int R, int W, int U>
__device__ __forceinline__ void cached_stream(const uint4* in, uint4* out, unsigned count, int rounds, unsigned guard) {
    const unsigned threads = gridDim.x * blockDim.x;
    const unsigned step = (unsigned)((unsigned long long)threads * U % count);
    unsigned at[U];
#pragma unroll
    for (int u = 0; u < U; ++u) {
        const unsigned long long first = (unsigned long long)u * threads + blockIdx.x * blockDim.x + threadIdx.x;
        at[u] = (unsigned)(first % count);
    }
    uint4 all_bits = make_uint4(guard, guard, guard, guard);
    for (int round = 0; round < rounds; ++round) {
        uint4 v[U];
#pragma unroll
        for (int u = 0; u < U; ++u) {
            v[u] = make_uint4(guard, guard, guard, guard);
#pragma unroll
            for (int r = 0; r < R; ++r) {
                const uint4 w = load_l2(in + (unsigned long long)r * count + at[u]);
                v[u].x ^= w.x; v[u].y ^= w.y; v[u].z ^= w.z; v[u].w ^= w.w;
            }
        }
#pragma unroll
        for (int u = 0; u < U; ++u) {
#pragma unroll
            for (int w = 0; w < W; ++w) {
                store_l2(out + (unsigned long long)w * count + at[u], v[u]);
            }
            all_bits.x &= v[u].x; all_bits.y &= v[u].y; all_bits.z &= v[u].z; all_bits.w &= v[u].w;
            at[u] += step;
            at[u] = at[u] >= count ? at[u] - count : at[u];
        }
    }
    // Never true for these buffers (all values are below 2^30), but the compiler does not know this.
    if (W == 0 && (all_bits.x | all_bits.y | all_bits.z | all_bits.w) == 0xFFFFFFFFu) {
        out[0] = all_bits;
    }
}
#define CACHED_STREAM(R, W, U)                                                                              \
    extern "C" __global__ void __launch_bounds__(512) kernelviz_cached_stream_##R##_##W##_##U(              \
        const uint4* in, uint4* out, unsigned count, int rounds, unsigned guard) {                          \
        cached_stream<R, W, U>(in, out, count, rounds, guard);                                              \
    }
#define CACHED_STREAMS(R, W)  \
    CACHED_STREAM(R, W, 1)    \
    CACHED_STREAM(R, W, 4)
CACHED_STREAMS(1, 0)
CACHED_STREAMS(2, 1)
CACHED_STREAMS(1, 1)
CACHED_STREAMS(1, 2)
CACHED_STREAMS(0, 1)

// Multiply-adds in registers: CHAINS independent chains per thread, each UNROLLED x rounds long. x alternates between x and
// 1 - x, so the numbers stay in [0, 1] and their bits keep changing (zeros would draw less power). The instructions are PTX,
// because the compiler would simplify the arithmetic, and because PTX needs no headers for the 16-bit formats.
constexpr int CHAINS = 8;
constexpr int UNROLLED = 16;

__device__ __forceinline__ void fma_fp32(float& x, float a, float b) {
    asm("fma.rn.f32 %0, %0, %1, %2;" : "+f"(x) : "f"(a), "f"(b));
}
__device__ __forceinline__ void fma_fp64(double& x, double a, double b) {
    asm("fma.rn.f64 %0, %0, %1, %2;" : "+d"(x) : "d"(a), "d"(b));
}
__device__ __forceinline__ void fma_fp16(unsigned& x, unsigned a, unsigned b) {
    asm("fma.rn.f16x2 %0, %0, %1, %2;" : "+r"(x) : "r"(a), "r"(b));
}
__device__ __forceinline__ void fma_bf16(unsigned& x, unsigned a, unsigned b) {
    asm("fma.rn.bf16x2 %0, %0, %1, %2;" : "+r"(x) : "r"(a), "r"(b));
}

// `minus_one` and `one` are arguments, so that the compiler cannot fold a chain. START(i): a number in [0, 1]; REACHED(x): a
// condition that no number in [0, 1] fulfils, which keeps the result alive.
#define FMA(NAME, TYPE, START, REACHED)                                                                     \
    extern "C" __global__ void __launch_bounds__(512) kernelviz_fma_##NAME(                                 \
        TYPE* sink, int rounds, TYPE minus_one, TYPE one) {                                                 \
        TYPE x[CHAINS];                                                                                     \
        for (int c = 0; c < CHAINS; ++c) {                                                                  \
            const int i = (int)threadIdx.x * CHAINS + c;                                                    \
            x[c] = START;                                                                                   \
        }                                                                                                   \
        for (int round = 0; round < rounds; ++round) {                                                      \
            _Pragma("unroll") for (int u = 0; u < UNROLLED; ++u) {                                          \
                _Pragma("unroll") for (int c = 0; c < CHAINS; ++c) {                                        \
                    fma_##NAME(x[c], minus_one, one);                                                       \
                }                                                                                           \
            }                                                                                               \
        }                                                                                                   \
        for (int c = 0; c < CHAINS; ++c) {                                                                  \
            if (REACHED(x[c])) {                                                                            \
                *sink = x[c];                                                                               \
            }                                                                                               \
        }                                                                                                   \
    }
#define NEGATIVE(x) ((x) < 0)
#define SIGN_BIT(x) (((x) & 0x80008000u) != 0u)
FMA(fp32, float, (float)i / 4096.0f, NEGATIVE)
FMA(fp64, double, (double)i / 4096.0, NEGATIVE)
// Bit patterns from 2^-2 on, which are below 1 in both formats; both halves are equal.
FMA(fp16, unsigned, 0x34003400u + (unsigned)(i & 0x3FF) * 0x00010001u, SIGN_BIT)
#if __CUDA_ARCH__ >= 800
FMA(bf16, unsigned, 0x3E803E80u + (unsigned)(i & 0x7F) * 0x00010001u, SIGN_BIT)
#endif
