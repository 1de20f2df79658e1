// CUDA C++ kernel of `scatter_add` for few rows of src, in one launch. ELEMENT is float, __half or __nv_bfloat16; an access has VEC elements, so
// that rows are whole accesses; sums are computed in fp32. THREADS: of a block, whole warps.
#include "vec16.cuh"
#include "votes.cuh"

struct alignas(sizeof(ELEMENT) * VEC) Vec {
    ELEMENT e[VEC];
};

constexpr int MOST_ROWS = 1024, AT_ONCE = 4;

__device__ __forceinline__ void add_to(float (&total)[VEC], const Vec& vector) {
#pragma unroll
    for (int e = 0; e < VEC; ++e) {
        total[e] += to_float(vector.e[e]);
    }
}

// A block has one row of src and a piece of it, and ends unless the row is the first one with its id: then it adds to that id's sum all rows with
// the id, in their order. `same` has a bit for each row with the id. The block's own row is loaded before its id is known to be the first.
extern "C" __global__ void __launch_bounds__(THREADS) scatter_few_rows(
    ELEMENT* x, const ELEMENT* __restrict__ src, const long long* __restrict__ ids, int t, int vectors, int pieces) {
    __shared__ unsigned same[MOST_ROWS / 32];
    const int row = blockIdx.x / pieces;
    const int vec = (blockIdx.x - row * pieces) * THREADS + threadIdx.x;
    const bool inside = vec < vectors;
    const Vec* from = reinterpret_cast<const Vec*>(src) + vec;
    const long long id = ids[row];
    Vec* const at = reinterpret_cast<Vec*>(x) + id * vectors + vec;
    Vec first, sum;
    if (inside) {
        first = from[(long long)row * vectors];
        sum = *at;
    }
    for (int base = 0; base < t; base += THREADS) {
        const int other = base + threadIdx.x;
        const unsigned bits = lanes_with(other < t && ids[other] == id);
        if (threadIdx.x % 32 == 0 && other < t) {
            same[other / 32] = bits;
        }
    }
    __syncthreads();
    unsigned earlier = same[row / 32] & ((1u << row % 32) - 1);
    for (int word = 0; word < row / 32; ++word) {
        earlier |= same[word];
    }
    if (earlier != 0) {
        return;
    }
    float total[VEC];
#pragma unroll
    for (int e = 0; e < VEC; ++e) {
        total[e] = 0.0f;
    }
    if (inside) {
        add_to(total, first);
    }
    const int words = (t + 31) / 32;
    int word = row / 32;
    unsigned bits = same[word] & ~(1u << row % 32);
    while (true) {
        Vec loaded[AT_ONCE];
        int count = 0;
#pragma unroll
        for (int k = 0; k < AT_ONCE; ++k) {
            while (bits == 0 && word + 1 < words) {
                bits = same[++word];
            }
            if (bits != 0) {
                const int other = word * 32 + lowest_bit(bits);
                bits &= bits - 1;
                count = k + 1;
                if (inside) {
                    loaded[k] = from[(long long)other * vectors];
                }
            }
        }
#pragma unroll
        for (int k = 0; k < AT_ONCE; ++k) {
            if (k < count && inside) {
                add_to(total, loaded[k]);
            }
        }
        if (count < AT_ONCE) {
            break;
        }
    }
    if (inside) {
        add_to(total, sum);
#pragma unroll
        for (int e = 0; e < VEC; ++e) {
            sum.e[e] = from_float<ELEMENT>(total[e]);
        }
        *at = sum;
    }
}
