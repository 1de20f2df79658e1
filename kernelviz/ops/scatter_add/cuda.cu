// CUDA C++ kernels of `scatter_add`. ELEMENT is float, __half or __nv_bfloat16; VEC elements a vector, so that rows are whole
// vectors; sums are made in fp32. INDEX: unsigned where it is enough for all elements, else unsigned long long.
#include "vec16.cuh"

struct alignas(sizeof(ELEMENT) * VEC) Vec {
    ELEMENT e[VEC];
};

// 1. One atomic addition an element. `sum` is x itself in fp32, else a copy of it in fp32.
extern "C" __global__ void __launch_bounds__(256) scatter_atomics(
    float* sum, const ELEMENT* __restrict__ src, const long long* __restrict__ ids, INDEX t, int d) {
    const INDEX i = (INDEX)blockIdx.x * blockDim.x + threadIdx.x;
    const INDEX row = i / (INDEX)d;
    if (row < t) {
        atomicAdd(sum + ids[row] * d + (long long)(i - row * (INDEX)d), to_float(src[i]));
    }
}

// 2. Segments. A counting sort: how many rows each sum has, and the how-manieth of them each row is; `counts` is zero before.
extern "C" __global__ void __launch_bounds__(256) segments_count(
    const long long* __restrict__ ids, int* counts, int* __restrict__ ranks, long long t) {
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < t) {
        ranks[i] = atomicAdd(counts + ids[i], 1);
    }
}

// Where each sum's rows are listed. Lists may follow one another in any order, so no scan is needed: a warp adds up its
// counts and takes that many places behind counts[v], which counts the places taken.
extern "C" __global__ void __launch_bounds__(256) segments_allocate(int* counts, int* __restrict__ starts, long long v) {
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    const int lane = threadIdx.x % 32;
    const int mine = i < v ? counts[i] : 0;
    int before = mine;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        const int other = __shfl_up_sync(~0u, before, step);
        before += lane >= step ? other : 0;
    }
    int base = 0;
    if (lane == 31 && before > 0) {
        base = atomicAdd(counts + v, before);
    }
    base = __shfl_sync(~0u, base, 31);
    if (i < v) {
        starts[i] = base + before - mine;
    }
}

extern "C" __global__ void __launch_bounds__(256) segments_place(
    const long long* __restrict__ ids, const int* __restrict__ starts, const int* __restrict__ ranks,
    int* __restrict__ order, long long t) {
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < t) {
        order[starts[ids[i]] + ranks[i]] = (int)i;
    }
}

constexpr int AT_ONCE = 4;

// blockDim.x threads take that many vectors of a row; blockDim.y sums a block, or (TOGETHER) the rows of one sum by turns.
// Sums 0 to `sums`; where there are fewer rows than sums (BY_ROWS) the sums that the first row of each names.
extern "C" __global__ void __launch_bounds__(256) segments_sum(
    ELEMENT* x, const ELEMENT* __restrict__ src, const int* __restrict__ counts, const int* __restrict__ starts,
    const int* __restrict__ order, const long long* __restrict__ ids, const int* __restrict__ ranks, long long sums,
    int vectors, int pieces) {
    const int vector = (int)(blockIdx.x % pieces) * blockDim.x + threadIdx.x;
    const long long i = TOGETHER ? blockIdx.x / pieces : blockIdx.x / pieces * blockDim.y + threadIdx.y;
    const bool named = i < sums && (!BY_ROWS || ranks[i] == 0);
    const long long row = BY_ROWS && named ? ids[i] : i;
    const int count = named ? counts[row] : 0;
    const int first = TOGETHER ? threadIdx.y : 0, step = TOGETHER ? blockDim.y : 1;
    const bool inside = vector < vectors && count > 0;
    float total[VEC];
#pragma unroll
    for (int e = 0; e < VEC; ++e) {
        total[e] = 0.0f;
    }
    Vec* const at = reinterpret_cast<Vec*>(x) + row * vectors + vector;
    if (inside) {
        const int* list = order + starts[row];
        Vec own;
        if (first == 0) {
            own = *at;
        }
        for (int k = first; k < count; k += AT_ONCE * step) {
            Vec found[AT_ONCE];
#pragma unroll
            for (int j = 0; j < AT_ONCE; ++j) {
                if (k + j * step < count) {
                    found[j] = reinterpret_cast<const Vec*>(src)[(long long)list[k + j * step] * vectors + vector];
                }
            }
#pragma unroll
            for (int j = 0; j < AT_ONCE; ++j) {
                if (k + j * step < count) {
#pragma unroll
                    for (int e = 0; e < VEC; ++e) {
                        total[e] += to_float(found[j].e[e]);
                    }
                }
            }
        }
        if (first == 0) {
#pragma unroll
            for (int e = 0; e < VEC; ++e) {
                total[e] += to_float(own.e[e]);
            }
        }
    }
    if constexpr (TOGETHER) {
        __shared__ float partial[256][VEC + 1];
        const int mine = threadIdx.y * blockDim.x + threadIdx.x;
#pragma unroll
        for (int e = 0; e < VEC; ++e) {
            partial[mine][e] = total[e];
        }
        __syncthreads();
        if (threadIdx.y == 0) {
            for (int other = 1; other < blockDim.y; ++other) {
#pragma unroll
                for (int e = 0; e < VEC; ++e) {
                    total[e] += partial[other * blockDim.x + threadIdx.x][e];
                }
            }
        }
    }
    if (inside && first == 0) {
        Vec sum;
#pragma unroll
        for (int e = 0; e < VEC; ++e) {
            sum.e[e] = from_float<ELEMENT>(total[e]);
        }
        *at = sum;
    }
}
