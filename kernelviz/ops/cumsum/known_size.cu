// CUDA C++ kernel of `cumsum` of few elements, by one block, for one size only. ELEMENT is float, __half or __nv_bfloat16; sums are made in
// fp32 and rounded once an element. With the size as a constant, nothing is computed about addresses, ends or tiles.
#include "access_bits.cuh"
#include "lane_scan.cuh"
#include "one_element.cuh"
#include "vec16.cuh"

// SIZE elements, OF_THREAD adjacent ones a thread.
#ifndef SIZE
#define SIZE 1
#define OF_THREAD 1
#endif
constexpr int THREADS = (SIZE + OF_THREAD - 1) / OF_THREAD;
constexpr int BLOCK = (THREADS + 31) / 32 * 32, WARPS = BLOCK / 32;
constexpr int LANES = THREADS < 32 ? THREADS : 32;
constexpr unsigned ALL = 0xffffffffu;
struct alignas(sizeof(ELEMENT) * OF_THREAD) Vector {
    ELEMENT of[OF_THREAD];
};

// One thread is the block, for up to SERIAL elements: their scan by a warp takes up to four shuffles, each of which takes about as long as six
// additions. x starts on a multiple of 16 bytes, as out does.
constexpr int SERIAL = 16;
extern "C" __global__ void __launch_bounds__(1, 1) cumsum_known_size_serial(const ELEMENT* __restrict__ x, ELEMENT* __restrict__ out) {
    using Vec = Vec16<ELEMENT>;
    constexpr int COUNT = SIZE < SERIAL ? SIZE : SERIAL, WIDTH = Vec::WIDTH, WHOLE = COUNT / WIDTH, AFTER = COUNT % WIDTH;
    ELEMENT* to = address_now(out);
    Vec vectors[WHOLE + 1];
#pragma unroll
    for (int v = 0; v < WHOLE; ++v) {
        vectors[v] = reinterpret_cast<const Vec*>(x)[v];
    }
#pragma unroll
    for (int e = 0; e < AFTER; ++e) {
        vectors[WHOLE].e[e] = x[WHOLE * WIDTH + e];
    }
    // Within each vector first, so that no more additions wait for each other than a vector has elements and the rest has vectors.
    float base = 0.0f;
#pragma unroll
    for (int v = 0; v < WHOLE + (AFTER > 0); ++v) {
        const int count = v < WHOLE ? WIDTH : AFTER;
        float upto = to_float(vectors[v].e[0]);
#pragma unroll
        for (int e = 0; e < WIDTH; ++e) {
            if (e < count) {
                upto = e == 0 ? upto : upto + to_float(vectors[v].e[e]);
                vectors[v].e[e] = from_float<ELEMENT>(v == 0 ? upto : base + upto);
            }
        }
        base = v == 0 ? upto : base + upto;
    }
#pragma unroll
    for (int v = 0; v < WHOLE; ++v) {
        reinterpret_cast<Vec*>(to)[v] = vectors[v];
    }
#pragma unroll
    for (int e = 0; e < AFTER; ++e) {
        to[WHOLE * WIDTH + e] = vectors[WHOLE].e[e];
    }
}

// The elements behind the last vector, in pieces of a power of two: as few accesses as there are ones in AFTER.
constexpr int WHOLE = SIZE / OF_THREAD, AFTER = SIZE % OF_THREAD;
static_assert(WHOLE > 0);
template <int BYTES> struct Piece : BitsOf<BYTES> {};
template <> struct Piece<8> {
    using Type = unsigned long long;  // uint2 has no volatile copy
};
template <int PIECE> __device__ __forceinline__ void load_after(const ELEMENT* from, Vector& after) {
    if constexpr (PIECE > 0) {
        if constexpr ((AFTER & PIECE) > 0) {
            constexpr int FIRST = AFTER / (2 * PIECE) * (2 * PIECE);
            using Bits = typename Piece<PIECE * sizeof(ELEMENT)>::Type;
            // Volatile, because the compiler would move the load to the branch that needs it, behind the barrier.
            *reinterpret_cast<Bits*>(after.of + FIRST) = *reinterpret_cast<const volatile Bits*>(from + FIRST);
        }
        load_after<PIECE / 2>(from, after);
    }
}
template <int PIECE> __device__ __forceinline__ void store_after(ELEMENT* to, const Vector& after) {
    if constexpr (PIECE > 0) {
        if constexpr ((AFTER & PIECE) > 0) {
            constexpr int FIRST = AFTER / (2 * PIECE) * (2 * PIECE);
            using Bits = typename Piece<PIECE * sizeof(ELEMENT)>::Type;
            *reinterpret_cast<Bits*>(to + FIRST) = *reinterpret_cast<const Bits*>(after.of + FIRST);
        }
        store_after<PIECE / 2>(to, after);
    }
}

// x starts on a multiple of a vector, as out does. Every thread loads the elements behind the last vector, of which one needs them, because no
// load may be in a branch: H200, 545 fp16 took 1.64 us where the warp of that thread waited for memory twice, and 1.29 in torch.compile.
extern "C" __global__ void __launch_bounds__(BLOCK, 1) cumsum_known_size(
    const ELEMENT* __restrict__ x, ELEMENT* __restrict__ out) {
    // All threads of the warp store the only number, so that none has to leave.
    const int thread = THREADS == 1 ? 0 : threadIdx.x;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    Vector* to = address_now(reinterpret_cast<Vector*>(out) + thread);
    // Threads behind the last vector load it again, and no other sum contains theirs.
    Vector vector = reinterpret_cast<const Vector*>(x)[thread < WHOLE ? thread : WHOLE - 1], after{};
    load_after<OF_THREAD / 2>(x + WHOLE * OF_THREAD, after);
    float upto[OF_THREAD];
    upto[0] = to_float(vector.of[0]);
#pragma unroll
    for (int e = 1; e < OF_THREAD; ++e) {
        upto[e] = upto[e - 1] + to_float(vector.of[e]);
    }
    float with_lanes = upto[OF_THREAD - 1];
#pragma unroll
    for (int apart = 1; apart < LANES; apart *= 2) {
        add_lane_below(with_lanes, apart);
    }
    float base = 0.0f;
    if (WARPS > 1) {
        __shared__ float of_warp[WARPS];
        if (lane == 31) {
            of_warp[warp] = with_lanes;
        }
        __syncthreads();
#pragma unroll
        for (int w = 0; w < WARPS - 1; ++w) {
            base += w < warp ? of_warp[w] : 0.0f;
        }
    }
    if (OF_THREAD == 1) {
        upto[0] = with_lanes;
    } else if (LANES > 1) {
        const float before = __shfl_up_sync(ALL, with_lanes, 1);
        base += lane > 0 ? before : 0.0f;
    }
#pragma unroll
    for (int e = 0; e < OF_THREAD; ++e) {
        // The compiler does not leave out 0 + x, which is not x where x is -0.
        vector.of[e] = from_float<ELEMENT>(WARPS == 1 && OF_THREAD == 1 ? upto[e] : base + upto[e]);
    }
    if (thread < WHOLE) {
        *to = vector;
    } else if (AFTER > 0 && thread == WHOLE) {
#pragma unroll
        for (int e = 0; e < AFTER; ++e) {
            base += to_float(after.of[e]);
            after.of[e] = from_float<ELEMENT>(base);
        }
        store_after<OF_THREAD / 2>(to->of, after);
    }
}
