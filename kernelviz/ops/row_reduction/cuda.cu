// CUDA C++ kernels of `row_sum` and, with -DARGMAX, of `argmax`. ELEMENT is float, __half or __nv_bfloat16; sums are in fp32.
#include "vec16.cuh"

#ifndef THREADS
#define THREADS 256
#endif
constexpr int VECTORS = 4;  // 16-byte vectors of a thread in flight at once
constexpr int WIDTH = Vec16<ELEMENT>::WIDTH;
constexpr int NO_INDEX = 0x7fffffff;

#ifdef ARGMAX
typedef long long OUT;
// The largest number so far and its index: the first of equal numbers, NaN above all, as in torch.
struct Partial {
    float value = -__int_as_float(0x7f800000);
    int at = NO_INDEX;
    // Indices come in ascending order, so a number that is not larger does not replace.
    __device__ __forceinline__ void add(float v, int i) {
        if (!(v <= value) && value == value) {
            value = v;
            at = i;
        }
    }
    __device__ __forceinline__ void merge(const Partial& other) {
        const bool is_nan = value != value, other_is_nan = other.value != other.value;
        const bool larger = other_is_nan ? !is_nan : other.value > value;
        const bool equal = other_is_nan ? is_nan : other.value == value;
        if (larger || (equal && other.at < at)) {
            *this = other;
        }
    }
    __device__ __forceinline__ Partial shuffled(int distance) const {
        Partial other;
        other.value = __shfl_xor_sync(0xffffffffu, value, distance);
        other.at = __shfl_xor_sync(0xffffffffu, at, distance);
        return other;
    }
    // If nothing was above -inf, all elements of the row are -inf, and the first index is as good as any.
    __device__ __forceinline__ OUT out() const { return at == NO_INDEX ? 0 : at; }
};
#else
typedef ELEMENT OUT;
struct Partial {
    float value = 0.0f;
    int at = 0;
    __device__ __forceinline__ void add(float v, int) { value += v; }
    __device__ __forceinline__ void merge(const Partial& other) { value += other.value; }
    __device__ __forceinline__ Partial shuffled(int distance) const {
        Partial other;
        other.value = __shfl_xor_sync(0xffffffffu, value, distance);
        return other;
    }
    __device__ __forceinline__ OUT out() const { return from_float<ELEMENT>(value); }
};
#endif

__device__ __forceinline__ void add_vector(Partial& partial, const Vec16<ELEMENT>& vector, int first) {
#pragma unroll
    for (int k = 0; k < WIDTH; ++k) {
        partial.add(to_float(vector.e[k]), first + k);
    }
}

// The partial result of thread `lane` of LANES over x[first .. last). Rows start anywhere in a 16-byte vector, so the elements before
// the first whole vector and after the last are processed one by one.
template <int LANES> __device__ __forceinline__ Partial reduce_part(const ELEMENT* x, int first, int last, int lane) {
    Partial partial;
    const int n = last - first;
    const int before = (16 - reinterpret_cast<unsigned long long>(x + first) % 16) % 16 / sizeof(ELEMENT);
    const int head = before < n ? before : n;
    const int count = (n - head) / WIDTH;
    const int begin = first + head;
    const Vec16<ELEMENT>* vectors = reinterpret_cast<const Vec16<ELEMENT>*>(x + begin);
    if (lane < head) {
        partial.add(to_float(x[first + lane]), first + lane);
    }
    int i = lane;
    Vec16<ELEMENT> vector[VECTORS];
    for (; i + (VECTORS - 1) * LANES < count; i += VECTORS * LANES) {
#pragma unroll
        for (int k = 0; k < VECTORS; ++k) {
            vector[k] = load_streaming(vectors + i + k * LANES);
        }
#pragma unroll
        for (int k = 0; k < VECTORS; ++k) {
            add_vector(partial, vector[k], begin + (i + k * LANES) * WIDTH);
        }
    }
#pragma unroll
    for (int k = 0; k < VECTORS - 1; ++k) {
        if (i + k * LANES < count) {
            vector[k] = load_streaming(vectors + i + k * LANES);
        }
    }
#pragma unroll
    for (int k = 0; k < VECTORS - 1; ++k) {
        if (i + k * LANES < count) {
            add_vector(partial, vector[k], begin + (i + k * LANES) * WIDTH);
        }
    }
    const int tail = begin + count * WIDTH + lane;
    if (tail < last) {
        partial.add(to_float(x[tail]), tail);
    }
    return partial;
}

// The result over a warp, in every lane.
__device__ __forceinline__ Partial over_warp(Partial partial) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
        partial.merge(partial.shuffled(distance));
    }
    return partial;
}

// The result over a block, in every lane of its first warp.
__device__ __forceinline__ Partial over_block(Partial partial) {
    __shared__ float values[32];
    __shared__ int indices[32];
    partial = over_warp(partial);
    if (THREADS == 32) {
        return partial;
    }
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (lane == 0) {
        values[warp] = partial.value;
        indices[warp] = partial.at;
    }
    __syncthreads();
    if (warp == 0) {
        partial = Partial();
        if (lane < THREADS / 32) {
            partial.value = values[lane];
            partial.at = indices[lane];
        }
        partial = over_warp(partial);
    }
    return partial;
}

// 1. A thread a row: neighbouring threads read addresses a row apart, so each element costs a sector.
extern "C" __global__ void __launch_bounds__(128) row_per_thread(
    const ELEMENT* __restrict__ x, OUT* __restrict__ out, int m, int n) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= m) {
        return;
    }
    Partial partial;
    for (int i = 0; i < n; ++i) {
        partial.add(to_float(x[(long long)row * n + i]), i);
    }
    out[row] = partial.out();
}

// 2. A warp a row, eight rows a block: no warp waits for another.
extern "C" __global__ void __launch_bounds__(256) row_per_warp(
    const ELEMENT* __restrict__ x, OUT* __restrict__ out, int m, int n) {
    const long long row = (long long)blockIdx.x * 8 + threadIdx.x / 32;
    if (row >= m) {
        return;
    }
    const Partial partial = over_warp(reduce_part<32>(x + row * n, 0, n, threadIdx.x % 32));
    if (threadIdx.x % 32 == 0) {
        out[row] = partial.out();
    }
}

// 3. A block a row: a long row is shared by enough threads to keep memory busy.
extern "C" __global__ void __launch_bounds__(THREADS) row_per_block(
    const ELEMENT* __restrict__ x, OUT* __restrict__ out, int m, int n) {
    const long long row = blockIdx.x;
    const Partial partial = over_block(reduce_part<THREADS>(x + row * n, 0, n, threadIdx.x));
    if (threadIdx.x == 0) {
        out[row] = partial.out();
    }
}

// 4. `splits` blocks a row, each with `part` of its elements. The last block of a row merges the partial results in the order of their
// indices. `tickets` count the finished blocks of each row; the last block resets its row's to 0.
extern "C" __global__ void __launch_bounds__(THREADS) row_split(
    const ELEMENT* __restrict__ x, float* __restrict__ values, int* __restrict__ indices, unsigned* __restrict__ tickets,
    OUT* __restrict__ out, int n, int splits, int part) {
    const long long row = blockIdx.x / splits;
    const int piece = blockIdx.x % splits;
    const int first = piece * part;
    const int last = n - first < part ? n : first + part;
    Partial partial = over_block(reduce_part<THREADS>(x + row * n, first, last, threadIdx.x));
    if (threadIdx.x >= 32) {
        return;
    }
    unsigned before = 0;
    if (threadIdx.x == 0) {
        values[blockIdx.x] = partial.value;
        indices[blockIdx.x] = partial.at;
        __threadfence();
        before = atomicInc(tickets + row, splits - 1);
    }
    if (__shfl_sync(0xffffffffu, before, 0) != splits - 1) {
        return;
    }
    __threadfence();
    partial = Partial();
    for (int k = threadIdx.x; k < splits; k += 32) {
        Partial other;
        other.value = __ldcg(values + row * splits + k);
        other.at = __ldcg(indices + row * splits + k);
        partial.merge(other);
    }
    partial = over_warp(partial);
    if (threadIdx.x == 0) {
        out[row] = partial.out();
    }
}
