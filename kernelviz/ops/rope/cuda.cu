// CUDA C++ kernels of `rope`. ELEMENT is float, __half or __nv_bfloat16; SIGN is 1 forwards and -1 backwards; arithmetic in fp32.
// Heads, pairs and vectors are constants of the compilation, so that no division is left before the first load.
#include "access_bits.cuh"
#include "conversions.cuh"

// HQ and HK heads of PAIRS pairs a token. UNIT elements of a vector, a power of two that divides PAIRS.
#ifndef PAIRS
#define SIGN 1
#define HQ 1
#define HK 1
#define PAIRS 1
#define UNIT 1
#define BLOCK_THREADS 32
#endif
// Of rope_flat: the type of an index that counts all elements. Of rope_vec16: heads of a thread, and blocks of a token.
#ifndef INDEX
#define INDEX unsigned
#endif
#ifndef HEADS_A_THREAD
#define HEADS_A_THREAD 1
#define CHUNKS 1
#endif
// Of rope_flat: whether a half is one vector, of at most 8 bytes, and the tensors begin so that a head is one access.
#ifndef WHOLE_HEADS
#define WHOLE_HEADS 0
#endif
constexpr int VECTORS = PAIRS / UNIT, HEADS = HQ + HK;  // vectors of half a head
static_assert(PAIRS % UNIT == 0 && (!WHOLE_HEADS || VECTORS == 1));

struct alignas(sizeof(ELEMENT) * UNIT) Vector {
    ELEMENT e[UNIT];
};
using Bits = BitsOf<sizeof(Vector)>::Type;
struct alignas(2 * sizeof(Vector)) Halves {
    Vector left, right;
};
using HalvesBits = BitsOf<WHOLE_HEADS ? sizeof(Halves) : 16>::Type;

// One access of memory. Not ld.global.nc: in place, the kernel also writes what it reads.
__device__ __forceinline__ Vector load_vector(const Vector* from) {
    const Bits bits = *reinterpret_cast<const Bits*>(from);
    return reinterpret_cast<const Vector&>(bits);
}
__device__ __forceinline__ Vector load_table(const Vector* from) {
    const Bits bits = __ldg(reinterpret_cast<const Bits*>(from));
    return reinterpret_cast<const Vector&>(bits);
}
__device__ __forceinline__ void store_vector(Vector* to, const Vector& vector) {
    *reinterpret_cast<Bits*>(to) = reinterpret_cast<const Bits&>(vector);
}

// Both halves x and z of some pairs, rotated and stored. 16-bit numbers are converted two at a time.
template <typename T> __device__ __forceinline__ void rotate(
    const Vector& x, const Vector& z, const Vector& c, const Vector& s, Vector* to) {
    Vector left, right;
    if constexpr (sizeof(T) == 2 && UNIT > 1) {
        using Pair = typename PackedPair<T>::type;
        auto pairs = [](const Vector& v) { return reinterpret_cast<const Pair*>(v.e); };
#pragma unroll
        for (int e = 0; e < UNIT / 2; ++e) {
            const float2 a = widened(pairs(x)[e]), b = widened(pairs(z)[e]);
            const float2 cosine = widened(pairs(c)[e]), sine = widened(pairs(s)[e]);
            reinterpret_cast<Pair*>(left.e)[e] = PackedPair<T>::rounded(
                a.x * cosine.x - b.x * (SIGN * sine.x), a.y * cosine.y - b.y * (SIGN * sine.y));
            reinterpret_cast<Pair*>(right.e)[e] = PackedPair<T>::rounded(
                b.x * cosine.x + a.x * (SIGN * sine.x), b.y * cosine.y + a.y * (SIGN * sine.y));
        }
    } else {
#pragma unroll
        for (int e = 0; e < UNIT; ++e) {
            const float a = to_float(x.e[e]), b = to_float(z.e[e]);
            const float cosine = to_float(c.e[e]), sine = SIGN * to_float(s.e[e]);
            left.e[e] = from_float<ELEMENT>(a * cosine - b * sine);
            right.e[e] = from_float<ELEMENT>(b * cosine + a * sine);
        }
    }
    if constexpr (WHOLE_HEADS) {
        const Halves halves = {left, right};
        *reinterpret_cast<HalvesBits*>(to) = reinterpret_cast<const HalvesBits&>(halves);
    } else {
        store_vector(to, left);
        store_vector(to + VECTORS, right);
    }
}

// 1. One vector of each half of a head a thread: for few elements, which take as long as the launch, the fetch of instructions and
// one load, and for heads whose halves are not a whole number of 16-byte vectors. Both halves of a head of at most 16 bytes are one
// access: 16,305,089 tokens of two heads of 2 bf16 took 125 us on an H200 with six accesses a thread, and 103 in torch.compile.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS) rope_flat(
    const ELEMENT* q, const ELEMENT* k, const ELEMENT* __restrict__ cos, const ELEMENT* __restrict__ sin, ELEMENT* q_out,
    ELEMENT* k_out, INDEX count) {
    const INDEX i = (INDEX)blockIdx.x * BLOCK_THREADS + threadIdx.x;
    if (i >= count) {
        return;
    }
    const INDEX row = i / VECTORS, token = row / HEADS;
    const unsigned vec = (unsigned)(i % VECTORS), head = (unsigned)(row % HEADS);
    const bool of_query = head < HQ;
    const INDEX at = (of_query ? token * HQ + head : token * HK + (head - HQ)) * (2 * VECTORS) + vec;
    const Vector* from = reinterpret_cast<const Vector*>(of_query ? q : k) + at;
    const INDEX of_table = token * VECTORS + vec;
    Vector x, z;
    if constexpr (WHOLE_HEADS) {
        const HalvesBits bits = *reinterpret_cast<const HalvesBits*>(from);
        const Halves& halves = reinterpret_cast<const Halves&>(bits);
        x = halves.left, z = halves.right;
    } else {
        x = load_vector(from), z = load_vector(from + VECTORS);
    }
    const Vector c = load_table(reinterpret_cast<const Vector*>(cos) + of_table);
    const Vector s = load_table(reinterpret_cast<const Vector*>(sin) + of_table);
    rotate<ELEMENT>(x, z, c, s, reinterpret_cast<Vector*>(of_query ? q_out : k_out) + at);
}

// 2. One 16-byte vector of each half of a head, HEADS_A_THREAD heads a thread, all loaded before the first is rotated. Neighbouring
// threads of a block have neighbouring vectors of a half, so a thread's cosines and sines are the same for all its heads.
// In place each vector is read by the thread that writes it, so the pointers may be the same (no __restrict__).
// No streaming hints: with them an H200 moved 3784 GB/s instead of the 4201 of Triton's plain accesses.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS) rope_vec16(
    const ELEMENT* q, const ELEMENT* k, const ELEMENT* __restrict__ cos, const ELEMENT* __restrict__ sin, ELEMENT* q_out,
    ELEMENT* k_out) {
    constexpr int ABREAST = BLOCK_THREADS / VECTORS > 0 ? BLOCK_THREADS / VECTORS : 1;  // heads that the block processes at once
    const long long token = blockIdx.x / CHUNKS;
    const int first = (int)(blockIdx.x % CHUNKS) * ABREAST * HEADS_A_THREAD + (int)threadIdx.x / VECTORS;
    const int vec = threadIdx.x % VECTORS;
    if (threadIdx.x >= ABREAST * VECTORS) {
        return;
    }
    // The heads of a token are numbered consecutively, first those of the queries, then those of the keys.
    auto offset = [=](int head) {
        return (head < HQ ? token * HQ + head : token * HK + (head - HQ)) * (2 * VECTORS) + vec;
    };
    Vector x[HEADS_A_THREAD], z[HEADS_A_THREAD];
#pragma unroll
    for (int i = 0; i < HEADS_A_THREAD; ++i) {
        const int head = first + i * ABREAST;
        if (head < HEADS) {
            const Vector* from = reinterpret_cast<const Vector*>(head < HQ ? q : k) + offset(head);
            x[i] = load_vector(from);
            z[i] = load_vector(from + VECTORS);
        }
    }
    const Vector c = load_table(reinterpret_cast<const Vector*>(cos) + token * VECTORS + vec);
    const Vector s = load_table(reinterpret_cast<const Vector*>(sin) + token * VECTORS + vec);
#pragma unroll
    for (int i = 0; i < HEADS_A_THREAD; ++i) {
        const int head = first + i * ABREAST;
        if (head < HEADS) {
            rotate<ELEMENT>(x[i], z[i], c, s, reinterpret_cast<Vector*>(head < HQ ? q_out : k_out) + offset(head));
        }
    }
}
