// CUDA C++ kernels of `row_sum` of short rows, for one length only. ELEMENT is float, __half or __nv_bfloat16; sums are in fp32. With the
// length as a constant, nothing is computed about ends or loops, and all loads of a thread are in flight at once.
#include "adjacent_sum.cuh"
#include "vec16.cuh"

// LENGTH elements a row, LANES threads that share it, a power of two.
#ifndef LENGTH
#define LENGTH 1
#define LANES 1
#endif
constexpr int THREADS = 128;
constexpr int EACH = (LENGTH + LANES - 1) / LANES;

extern "C" __global__ void __launch_bounds__(THREADS) row_sum_known_length(
    const ELEMENT* __restrict__ x, ELEMENT* __restrict__ out, int last) {
    // No branch, so that nothing waits for one: threads behind the last row add it up again, and all threads of a row store its sum.
    const unsigned thread = blockIdx.x * THREADS + threadIdx.x;
    const int row = min((int)(thread / LANES), last), lane = thread % LANES, first = row * LENGTH;
    const ELEMENT* from = x + (first + lane);
    ELEMENT v[EACH];
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
        v[k] = (k + 1) * LANES <= LENGTH ? from[k * LANES] : x[first + min(k * LANES + lane, LENGTH - 1)];
    }
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
        sum += (k + 1) * LANES <= LENGTH || k * LANES + lane < LENGTH ? to_float(v[k]) : 0.0f;
    }
    sum = lanes_sum<LANES>(sum);
    out[row] = from_float<ELEMENT>(sum);
}

// Few rows of few elements: a thread has a row, and the block as many threads as there are rows. Rows start on multiples of UNIT elements.
#ifndef UNIT
#define UNIT 1
#endif

// The address of a structure in an array is one instruction, that of an element two.
struct RowOfThread {
    ELEMENT of[LENGTH];
};

extern "C" __global__ void __launch_bounds__(32) row_sum_known_serial(const ELEMENT* __restrict__ x, ELEMENT* __restrict__ out) {
    const RowOfThread* row = reinterpret_cast<const RowOfThread*>(x) + threadIdx.x;
    out[threadIdx.x] = from_float<ELEMENT>(adjacent_sum<UNIT, (LANES == 1 ? LENGTH : 1)>(row->of));
}

// Few rows of two or four 16-byte vectors, one for each of LANES threads, by one block of whole warps: one access to memory, and few instructions.
// Threads behind the last of VECTORS_OF_ALL add up the first row again, and all threads of a row store its sum.
#ifndef VECTORS_OF_ALL
#define VECTORS_OF_ALL LANES
#endif

extern "C" __global__ void __launch_bounds__(THREADS) row_sum_known_few_vectors(const ELEMENT* __restrict__ x, ELEMENT* __restrict__ out) {
    using Part = Adjacent<ELEMENT, 16 / sizeof(ELEMENT)>;
    const unsigned at = threadIdx.x < VECTORS_OF_ALL ? threadIdx.x : threadIdx.x % LANES;
    const float sum = sum_of_pairs(load_whole(reinterpret_cast<const Part*>(x) + at));
    out[at / LANES] = from_float<ELEMENT>(lanes_sum<LANES>(sum));
}

// Many rows of whole 16-byte vectors: a warp has whole rows, a thread one vector of each of ROWS of them, all loaded before the first is added.
#ifndef ROWS
#define ROWS 1
#endif
using Vector = Vec16<ELEMENT>;

extern "C" __global__ void __launch_bounds__(THREADS) row_sum_known_vectors(
    const ELEMENT* __restrict__ x, ELEMENT* __restrict__ out, int m) {
    constexpr int VECTORS = LENGTH / Vector::WIDTH, AT_ONCE = THREADS / LANES;
    const int lane = threadIdx.x % LANES;
    const int first = blockIdx.x * (AT_ONCE * ROWS) + threadIdx.x / LANES;
    const Vector* vectors = reinterpret_cast<const Vector*>(x) + (long long)first * VECTORS + lane;
    Vector vector[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        const bool inside = first + r * AT_ONCE < m && lane < VECTORS;
        vector[r] = inside ? load_vec16(vectors + r * AT_ONCE * VECTORS) : Vector{};
    }
    make_opaque(vector);
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        float sum = 0.0f;
#pragma unroll
        for (int e = 0; e < Vector::WIDTH; ++e) {
            sum += to_float(vector[r].e[e]);
        }
        sum = lanes_sum<LANES>(sum);
        if (lane == 0 && first + r * AT_ONCE < m) {
            out[first + r * AT_ONCE] = from_float<ELEMENT>(sum);
        }
    }
}
