// CUDA C++ kernels of the chain relu(x s + b), k steps. ELEMENT is float, __half or __nv_bfloat16. The s and b of a
// step are rows of n elements (SCALARS 0) or numbers (SCALARS 1).
#include "conversions.cuh"
#include "one_element.cuh"
#include "relu.cuh"

constexpr int WIDTH = Vec16<ELEMENT>::WIDTH;

// The chain of one element of a row of n, with the s and b of its column in each step; n is 1 for scalars.
__device__ __forceinline__ ELEMENT chained(
    const ELEMENT* x, const ELEMENT* s, const ELEMENT* b, long long i, long long n, int k) {
    const long long column = n == 1 ? 0 : i % n;
    float v = to_float(x[i]);
    for (int step = 0; step < k; ++step) {
        v = relu(fmaf(v, to_float(s[step * n + column]), to_float(b[step * n + column])));
    }
    return from_float<ELEMENT>(v);
}

// One element a thread, for rows that are not whole 16-byte vectors and for views that do not start on 16 bytes.
extern "C" __global__ void __launch_bounds__(256) chain_single(
    const ELEMENT* x, const ELEMENT* __restrict__ s, const ELEMENT* __restrict__ b, ELEMENT* out, long long count,
    long long n, int k) {
    const long long i = (long long)blockIdx.x * 256 + threadIdx.x;
    if (i < count) {
        out[i] = chained(x, s, b, i, n, k);
    }
}

#if SCALARS

// One element a thread and STEPS steps, whose numbers are all loaded at once: k loads one after the other would take longer than the rest
// of a small problem. No __restrict__ on x and out, because they may be the same.
#ifndef STEPS
#define STEPS 1
#endif
extern "C" __global__ void __launch_bounds__(128) chain_steps(
    const ELEMENT* x, const ELEMENT* __restrict__ s, const ELEMENT* __restrict__ b, ELEMENT* out, int last) {
    const int thread = blockIdx.x * 128 + threadIdx.x;
    // Threads behind the last element load it again, so that no load waits for a branch. They store nothing, because x may be out, and it does not
    // matter whether what they load is there already as the result.
    const ELEMENT one = x[min(thread, last)];
    ELEMENT* to = address_now(out + thread);
    ELEMENT scales[STEPS], shifts[STEPS];
#pragma unroll
    for (int step = 0; step < STEPS; ++step) {
        scales[step] = s[step];
        shifts[step] = b[step];
    }
    float v = to_float(one);
#pragma unroll
    for (int step = 0; step < STEPS; ++step) {
        v = relu(fmaf(v, to_float(scales[step]), to_float(shifts[step])));
    }
    if (thread <= last) {
        *to = from_float<ELEMENT>(v);
    }
}

// The elements after the last whole vector, by the first threads of the grid.
__device__ __forceinline__ void tail(
    const ELEMENT* x, const ELEMENT* s, const ELEMENT* b, ELEMENT* out, long long n, int k) {
    const long long i = n / WIDTH * WIDTH + (long long)blockIdx.x * 128 + threadIdx.x;
    if (i < n) {
        out[i] = chained(x, s, b, i, 1, k);
    }
}
__device__ __forceinline__ void load_vectors(const ELEMENT* x, long long n, Vec16<ELEMENT> (&vectors)[VECTORS]) {
    const long long first = (long long)blockIdx.x * (128 * VECTORS) + threadIdx.x;
#pragma unroll
    for (int w = 0; w < VECTORS; ++w) {
        if (first + w * 128 < n / WIDTH) {
            vectors[w] = load_vec16(reinterpret_cast<const Vec16<ELEMENT>*>(x) + first + w * 128);
        }
    }
}
__device__ __forceinline__ void store_vector(ELEMENT* out, long long n, int w, const Vec16<ELEMENT>& vector) {
    const long long i = (long long)blockIdx.x * (128 * VECTORS) + threadIdx.x + w * 128;
    if (i < n / WIDTH) {
        store_vec16(reinterpret_cast<Vec16<ELEMENT>*>(out) + i, vector);
    }
}

// VECTORS 16-byte vectors a thread, all loaded before the first is used; the numbers of the next step are prefetched during a step.
// No __restrict__ on x and out, because they may be the same.
#if !PACKED

extern "C" __global__ void __launch_bounds__(128) chain_scalars(
    const ELEMENT* x, const ELEMENT* __restrict__ s, const ELEMENT* __restrict__ b, ELEMENT* out, long long n, int k) {
    Vec16<ELEMENT> vectors[VECTORS];
    load_vectors(x, n, vectors);
    ELEMENT scales = s[0], shifts = b[0];
    float v[VECTORS][WIDTH];
#pragma unroll
    for (int w = 0; w < VECTORS; ++w) {
        widen(vectors[w], v[w]);
    }
    for (int step = 0; step < k; ++step) {
        const float scale = to_float(scales), shift = to_float(shifts);
        const int next = step + 1 < k ? step + 1 : step;
        scales = s[next];
        shifts = b[next];
#pragma unroll
        for (int w = 0; w < VECTORS; ++w) {
#pragma unroll
            for (int j = 0; j < WIDTH; ++j) {
                v[w][j] = relu(fmaf(v[w][j], scale, shift));
            }
        }
    }
#pragma unroll
    for (int w = 0; w < VECTORS; ++w) {
        store_vector(out, n, w, narrow<ELEMENT>(v[w]));
    }
    tail(x, s, b, out, n, k);
}

#else

// Two elements an instruction: product, sum and relu are one HFMA2.RELU, rounded to 16 bits at the end of each step.
extern "C" __global__ void __launch_bounds__(128) chain_scalars_packed(
    const ELEMENT* x, const ELEMENT* __restrict__ s, const ELEMENT* __restrict__ b, ELEMENT* out, long long n, int k) {
    using Pair = PackedPair<ELEMENT>::type;
    Vec16<ELEMENT> vectors[VECTORS];
    load_vectors(x, n, vectors);
    ELEMENT scales = s[0], shifts = b[0];
    for (int step = 0; step < k; ++step) {
        const Pair scale = {scales, scales}, shift = {shifts, shifts};
        const int next = step + 1 < k ? step + 1 : step;
        scales = s[next];
        shifts = b[next];
#pragma unroll
        for (int w = 0; w < VECTORS; ++w) {
            Pair* v = reinterpret_cast<Pair*>(&vectors[w]);
#pragma unroll
            for (int j = 0; j < WIDTH / 2; ++j) {
                v[j] = __hfma2_relu(v[j], scale, shift);
            }
        }
    }
#pragma unroll
    for (int w = 0; w < VECTORS; ++w) {
        store_vector(out, n, w, vectors[w]);
    }
    tail(x, s, b, out, n, k);
}

#endif

#else

// A thread processes one 16-byte vector of each of ROWS rows, so that s and b are read once for all of them. A block is blockDim.x
// vectors wide and ROWS * blockDim.y rows tall, with `across` blocks a row; threads after the last vector do nothing.
// No __restrict__ on x and out, because they may be the same.
struct Position {
    long long row;  // the thread's first one; the next follows blockDim.y rows below
    int vector, count;
    __device__ __forceinline__ Position(int n, int across) {
        const unsigned down = blockIdx.x / across;
        row = (long long)down * (ROWS * blockDim.y) + threadIdx.y;
        vector = (int)((blockIdx.x - down * across) * blockDim.x + threadIdx.x);
        count = n / WIDTH;
    }
};
__device__ __forceinline__ Vec16<ELEMENT> step_vector(const ELEMENT* vectors, int step, const Position& here) {
    return load_vec16(reinterpret_cast<const Vec16<ELEMENT>*>(vectors) + (long long)step * here.count + here.vector);
}
__device__ __forceinline__ void load_rows(const ELEMENT* x, long long m, const Position& here, Vec16<ELEMENT> (&vectors)[ROWS]) {
    const Vec16<ELEMENT>* from = reinterpret_cast<const Vec16<ELEMENT>*>(x) + here.row * here.count + here.vector;
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        if (here.row + r * blockDim.y < m) {
            vectors[r] = load_vec16(from + (long long)(r * blockDim.y) * here.count);
        }
    }
}
__device__ __forceinline__ void store_row(ELEMENT* out, long long m, const Position& here, int r, const Vec16<ELEMENT>& vector) {
    const long long row = here.row + r * blockDim.y;
    if (row < m) {
        store_vec16(reinterpret_cast<Vec16<ELEMENT>*>(out) + row * here.count + here.vector, vector);
    }
}

#if !PACKED

extern "C" __global__ void __launch_bounds__(256) chain_rows(
    const ELEMENT* x, const ELEMENT* __restrict__ s, const ELEMENT* __restrict__ b, ELEMENT* out, long long m, int n,
    int k, int across) {
    const Position here(n, across);
    if (here.vector >= here.count) {
        return;
    }
    Vec16<ELEMENT> vectors[ROWS];
    load_rows(x, m, here, vectors);
    Vec16<ELEMENT> scales = step_vector(s, 0, here), shifts = step_vector(b, 0, here);
    float v[ROWS][WIDTH];
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        widen(vectors[r], v[r]);
    }
    for (int step = 0; step < k; ++step) {
        float scale[WIDTH], shift[WIDTH];
        widen(scales, scale);
        widen(shifts, shift);
        // Prefetch those of the next step.
        const int next = step + 1 < k ? step + 1 : step;
        scales = step_vector(s, next, here);
        shifts = step_vector(b, next, here);
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
#pragma unroll
            for (int j = 0; j < WIDTH; ++j) {
                v[r][j] = relu(fmaf(v[r][j], scale[j], shift[j]));
            }
        }
    }
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        store_row(out, m, here, r, narrow<ELEMENT>(v[r]));
    }
}

#else

// Two elements an instruction: product, sum and relu are one HFMA2.RELU, rounded to 16 bits at the end of each step.
extern "C" __global__ void __launch_bounds__(256) chain_rows_packed(
    const ELEMENT* x, const ELEMENT* __restrict__ s, const ELEMENT* __restrict__ b, ELEMENT* out, long long m, int n,
    int k, int across) {
    using Pair = PackedPair<ELEMENT>::type;
    const Position here(n, across);
    if (here.vector >= here.count) {
        return;
    }
    Vec16<ELEMENT> vectors[ROWS];
    load_rows(x, m, here, vectors);
    Vec16<ELEMENT> scales = step_vector(s, 0, here), shifts = step_vector(b, 0, here);
    for (int step = 0; step < k; ++step) {
        const Vec16<ELEMENT> scale = scales, shift = shifts;
        const int next = step + 1 < k ? step + 1 : step;
        scales = step_vector(s, next, here);
        shifts = step_vector(b, next, here);
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            Pair* v = reinterpret_cast<Pair*>(&vectors[r]);
#pragma unroll
            for (int j = 0; j < WIDTH / 2; ++j) {
                v[j] = __hfma2_relu(
                    v[j], reinterpret_cast<const Pair*>(&scale)[j], reinterpret_cast<const Pair*>(&shift)[j]);
            }
        }
    }
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        store_row(out, m, here, r, vectors[r]);
    }
}

#endif
#endif
