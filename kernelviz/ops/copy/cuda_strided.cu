// CUDA C++ kernels of `strided_copy`: y[i] = x[i * s]. ELEMENT is an unsigned integer of the size of the problem's numbers: bits
// stay as they are.
#include "one_element.cuh"

// 1. One element a thread: beyond 32 bytes of stride, every thread of a warp reads a sector of its own.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS) strided_scalar(
    const ELEMENT* __restrict__ x, ELEMENT* __restrict__ out, INDEX last, INDEX stride) {
    const INDEX i = element_of_thread(last);
    out[i] = x[i * stride];
}

// 2. EACH elements a thread, a block's width apart, all loaded before the first is stored.
#ifndef EACH
#define EACH 4
#endif

extern "C" __global__ void __launch_bounds__(256) strided_unrolled(
    const ELEMENT* __restrict__ x, ELEMENT* __restrict__ out, long long n, long long stride) {
    const long long first = (long long)blockIdx.x * (256 * EACH) + threadIdx.x;
    ELEMENT selection[EACH];
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
        const long long i = first + k * 256;
        if (i < n) {
            selection[k] = x[i * stride];
        }
    }
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
        const long long i = first + k * 256;
        if (i < n) {
            out[i] = selection[k];
        }
    }
}

// 3. Whole 16-byte vectors: a thread writes one, for which it reads the vector round each of its elements and selects one element
// of it; neighbouring elements in one vector are taken from one read. Pointers are 16-byte aligned (the bind function checks it), and the
// elements after the last whole vector of the output are read one by one: their vectors may reach beyond the input's end.
constexpr int WIDTH = 16 / sizeof(ELEMENT);

struct alignas(16) Vec16 {
    ELEMENT e[WIDTH];
};

__device__ __forceinline__ ELEMENT selected(const Vec16& vector, int which) {
    ELEMENT element = vector.e[0];
#pragma unroll
    for (int k = 1; k < WIDTH; ++k) {
        element = which == k ? vector.e[k] : element;
    }
    return element;
}

extern "C" __global__ void __launch_bounds__(256) strided_vec16(
    const ELEMENT* __restrict__ x, ELEMENT* __restrict__ out, long long n, long long stride) {
    const long long thread = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    const long long first = thread * WIDTH;
    if (first + WIDTH <= n) {
        const Vec16* from = reinterpret_cast<const Vec16*>(x);
        Vec16 selection;
        Vec16 vectors[WIDTH];
#pragma unroll
        for (int k = 0; k < WIDTH; ++k) {
            const long long at = (first + k) * stride / WIDTH;
            // x holds n * stride elements; a last vector that would reach beyond them is read element by element below.
            if ((at + 1) * WIDTH <= n * stride) {
                vectors[k] = from[at];
            } else {
                vectors[k].e[0] = x[(first + k) * stride];
            }
        }
#pragma unroll
        for (int k = 0; k < WIDTH; ++k) {
            const long long i = (first + k) * stride;
            const bool whole = (i / WIDTH + 1) * WIDTH <= n * stride;
            selection.e[k] = selected(vectors[k], whole ? (int)(i % WIDTH) : 0);
        }
        reinterpret_cast<Vec16*>(out)[thread] = selection;
    } else {
        for (long long i = first; i < n; ++i) {
            out[i] = x[i * stride];
        }
    }
}
