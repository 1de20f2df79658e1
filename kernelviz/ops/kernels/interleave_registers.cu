// As interleave.cu, y[n][m] = x[m][n], or with RELU max(x[m][n], 0), for small matrices of few rows or few columns (STREAMS), whose time is
// the latency of memory, and for matrices of two columns: a thread loads EACH elements of every stream at once, in registers, without shared memory, barrier or division.
// EACH divides the length of a stream, so that no thread has fewer. ELEMENT is float, __half or __nv_bfloat16.
#if RELU
#include "relu.cuh"
#else
#include "vec16.cuh"
#endif

#ifndef STREAMS
#define STREAMS 1
#define EACH 1
#define FEW_ROWS 1
#define THREADS 64
#endif
constexpr int SIZE = sizeof(ELEMENT), ALL = STREAMS * EACH;
// Elements of the widest access that divides all elements of a thread.
constexpr int WIDEST = 16 / SIZE, FACTORS = ALL | WIDEST, PART = FACTORS & -FACTORS;

template <int COUNT> struct alignas(COUNT * SIZE) Elements {
    ELEMENT of[COUNT];
};
using Part = Elements<PART>;
using OfStream = Elements<EACH>;

__device__ __forceinline__ ELEMENT applied(ELEMENT v) {
#if RELU
    return relu(v);
#else
    return v;
#endif
}

// `length`: elements of a stream. Both matrices begin on 16 bytes.
extern "C" __global__ void __launch_bounds__(THREADS) interleave_registers(
    const ELEMENT* __restrict__ x, ELEMENT* __restrict__ y, int length) {
    const int first = (blockIdx.x * THREADS + threadIdx.x) * EACH;
    if (first >= length) {
        return;
    }
    OfStream streams[STREAMS];
    Part parts[ALL / PART];
    if constexpr (FEW_ROWS) {
#pragma unroll
        for (int s = 0; s < STREAMS; ++s) {
            streams[s] = *reinterpret_cast<const OfStream*>(x + s * length + first);
        }
#pragma unroll
        for (int i = 0; i < ALL; ++i) {
            parts[i / PART].of[i % PART] = applied(streams[i % STREAMS].of[i / STREAMS]);
        }
#pragma unroll
        for (int p = 0; p < ALL / PART; ++p) {
            reinterpret_cast<Part*>(y + first * STREAMS)[p] = parts[p];
        }
    } else {
#pragma unroll
        for (int p = 0; p < ALL / PART; ++p) {
            parts[p] = reinterpret_cast<const Part*>(x + first * STREAMS)[p];
        }
#pragma unroll
        for (int i = 0; i < ALL; ++i) {
            streams[i % STREAMS].of[i / STREAMS] = applied(parts[i / PART].of[i % PART]);
        }
#pragma unroll
        for (int s = 0; s < STREAMS; ++s) {
            *reinterpret_cast<OfStream*>(y + s * length + first) = streams[s];
        }
    }
}
