// CUDA C++ kernels of `scatter_add`. ELEMENT is float, __half or __nv_bfloat16; a vector has VEC elements, so that rows are
// whole vectors; sums are computed in fp32. INDEX: unsigned if it can index all elements, else unsigned long long.
#include "vec16.cuh"

struct alignas(sizeof(ELEMENT) * VEC) Vec {
    ELEMENT e[VEC];
};

// 1. One atomic addition an element. `sum` is x itself in fp32, otherwise sums that are zero at first.
extern "C" __global__ void __launch_bounds__(256) scatter_atomics(
    float* sum, const ELEMENT* __restrict__ src, const long long* __restrict__ ids, INDEX t, int d) {
    const INDEX i = (INDEX)blockIdx.x * blockDim.x + threadIdx.x;
    const INDEX row = i / (INDEX)d;
    if (row < t) {
        atomicAdd(sum + ids[row] * d + (long long)(i - row * (INDEX)d), to_float(src[i]));
    }
}

// 2. Segments. A counting sort: the number of rows of each sum, and the rank of each row among them. `counts` must be zero.
extern "C" __global__ void __launch_bounds__(256) segments_count(
    const long long* __restrict__ ids, int* counts, int* __restrict__ ranks, long long t) {
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < t) {
        ranks[i] = atomicAdd(counts + ids[i], 1);
    }
}

// Where the list of each sum's rows starts. Lists may follow one another in any order, so no scan is needed: a warp adds up its
// counts and reserves that many entries through counts[v], the number of reserved entries.
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

// blockDim.x threads process as many vectors of a row. The blockDim.y groups of a block have a sum each, or (TOGETHER) share the rows of
// one sum, every blockDim.y-th row a group. Sums 0 to `sums`; with fewer rows than sums (BY_ROWS) only the sums that have a row, each
// processed for its first row.
extern "C" __global__ void __launch_bounds__(256) segments_sum(
    ELEMENT* x, const ELEMENT* __restrict__ src, const int* __restrict__ counts, const int* __restrict__ starts,
    const int* __restrict__ order, const long long* __restrict__ ids, const int* __restrict__ ranks, long long sums,
    int vectors, int pieces) {
    const int vec = (int)(blockIdx.x % pieces) * blockDim.x + threadIdx.x;
    const long long i = TOGETHER ? blockIdx.x / pieces : blockIdx.x / pieces * blockDim.y + threadIdx.y;
    const bool has_rows = i < sums && (!BY_ROWS || ranks[i] == 0);
    const long long row = BY_ROWS && has_rows ? ids[i] : i;
    const int count = has_rows ? counts[row] : 0;
    const int first = TOGETHER ? threadIdx.y : 0, step = TOGETHER ? blockDim.y : 1;
    const bool inside = vec < vectors && count > 0;
    float total[VEC];
#pragma unroll
    for (int e = 0; e < VEC; ++e) {
        total[e] = 0.0f;
    }
    Vec* const at = reinterpret_cast<Vec*>(x) + row * vectors + vec;
    if (inside) {
        const int* list = order + starts[row];
        Vec own;
        if (first == 0) {
            own = *at;
        }
        for (int k = first; k < count; k += AT_ONCE * step) {
            Vec loaded[AT_ONCE];
#pragma unroll
            for (int j = 0; j < AT_ONCE; ++j) {
                if (k + j * step < count) {
                    loaded[j] = reinterpret_cast<const Vec*>(src)[(long long)list[k + j * step] * vectors + vec];
                }
            }
#pragma unroll
            for (int j = 0; j < AT_ONCE; ++j) {
                if (k + j * step < count) {
#pragma unroll
                    for (int e = 0; e < VEC; ++e) {
                        total[e] += to_float(loaded[j].e[e]);
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
