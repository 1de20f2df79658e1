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

// The partial result of thread `lane` of the `lanes` that share a row of n elements. Rows start anywhere in a 16-byte vector, so the elements
// before the first whole vector and after the last are processed one by one. All threads of a row read neighbouring vectors at once.
__device__ __forceinline__ Partial reduce_row(const ELEMENT* x, int n, int lane, int lanes) {
    Partial partial;
    const int before = (16 - reinterpret_cast<unsigned long long>(x) % 16) % 16 / sizeof(ELEMENT);
    const int head = before < n ? before : n;
    const int count = (n - head) / WIDTH;
    const Vec16<ELEMENT>* vectors = reinterpret_cast<const Vec16<ELEMENT>*>(x + head);
    if (lane < head) {
        partial.add(to_float(x[lane]), lane);
    }
    int i = lane;
    Vec16<ELEMENT> vector[VECTORS];
    for (; i + (VECTORS - 1) * lanes < count; i += VECTORS * lanes) {
#pragma unroll
        for (int k = 0; k < VECTORS; ++k) {
            vector[k] = load_streaming(vectors + i + k * lanes);
        }
#pragma unroll
        for (int k = 0; k < VECTORS; ++k) {
            add_vector(partial, vector[k], head + (i + k * lanes) * WIDTH);
        }
    }
#pragma unroll
    for (int k = 0; k < VECTORS - 1; ++k) {
        if (i + k * lanes < count) {
            vector[k] = load_streaming(vectors + i + k * lanes);
        }
    }
#pragma unroll
    for (int k = 0; k < VECTORS - 1; ++k) {
        if (i + k * lanes < count) {
            add_vector(partial, vector[k], head + (i + k * lanes) * WIDTH);
        }
    }
    const int tail = head + count * WIDTH;
    if (lane < n - tail) {  // tail + lane may be beyond 2^31
        partial.add(to_float(x[tail + lane]), tail + lane);
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
    const Partial partial = over_warp(reduce_row(x + row * n, n, threadIdx.x % 32, 32));
    if (threadIdx.x % 32 == 0) {
        out[row] = partial.out();
    }
}

// 3. A block a row: a long row is shared by enough threads to keep memory busy.
extern "C" __global__ void __launch_bounds__(THREADS) row_per_block(
    const ELEMENT* __restrict__ x, OUT* __restrict__ out, int m, int n) {
    const long long row = blockIdx.x;
    const Partial partial = over_block(reduce_row(x + row * n, n, threadIdx.x, THREADS));
    if (threadIdx.x == 0) {
        out[row] = partial.out();
    }
}

// 4. `splits` blocks a row, which read it together from its beginning to its end: a GPU that reads a few rows at a few places has fewer pages of
// memory open than one whose blocks each read a part of their own. The last block of a row merges the partial results. `tickets` count the
// finished blocks of each row; the last block resets its row's to 0.
extern "C" __global__ void __launch_bounds__(THREADS) row_split(
    const ELEMENT* __restrict__ x, float* __restrict__ values, int* __restrict__ indices, unsigned* __restrict__ tickets,
    OUT* __restrict__ out, int n, int splits) {
    const long long row = blockIdx.x / splits;
    const int piece = blockIdx.x % splits;
    Partial partial = over_block(reduce_row(x + row * n, n, piece * THREADS + threadIdx.x, splits * THREADS));
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

#ifndef ARGMAX
// As `reduce_row`, but no load is awaited before the last one of a round is issued, and the elements beside the whole vectors are added last.
__device__ __forceinline__ float sum_of_row(const ELEMENT* x, int n, int lane, int lanes) {
    const int before = (16 - reinterpret_cast<unsigned long long>(x) % 16) % 16 / sizeof(ELEMENT);
    const int head = before < n ? before : n;
    const int count = (n - head) / WIDTH, edges = n - count * WIDTH;
    const Vec16<ELEMENT>* vectors = reinterpret_cast<const Vec16<ELEMENT>*>(x + head);
    ELEMENT edge = from_float<ELEMENT>(0.0f);
    if (lane < edges) {
        edge = x[lane < head ? lane : count * WIDTH + lane];
    }
    float sum = 0.0f;
    for (int first = lane; first < count; first += VECTORS * lanes) {
        Vec16<ELEMENT> vector[VECTORS];
#pragma unroll
        for (int k = 0; k < VECTORS; ++k) {
            vector[k] = first + k * lanes < count ? load_streaming(vectors + first + k * lanes) : Vec16<ELEMENT>{};
        }
        make_opaque(vector);
#pragma unroll
        for (int k = 0; k < VECTORS; ++k) {
            Partial of_vector;
            add_vector(of_vector, vector[k], 0);
            sum += of_vector.value;
        }
    }
    return sum + to_float(edge);
}

// 5. The same parts, but the last block of a row waits for the sums of its others. A sum and the sign that it is there are one number of 64 bits,
// so that neither a fence nor an atomic operation is needed, each of which takes about as long as an access of the L2. A row has one block that
// waits, and there are no more rows than SMs, which have room for several blocks: so the others can run whatever their order. `slots`: for each
// block, 0 before and afterwards.
extern "C" __global__ void __launch_bounds__(THREADS, 3) row_sum_flagged(
    const ELEMENT* __restrict__ x, volatile unsigned long long* slots, OUT* __restrict__ out, int n, int splits) {
    const long long row = blockIdx.x / splits;
    const int piece = blockIdx.x % splits, others = splits - 1;
    Partial partial;
    partial.value = sum_of_row(x + row * n, n, piece * THREADS + threadIdx.x, splits * THREADS);
    partial = over_block(partial);
    volatile unsigned long long* of_row = slots + row * splits;
    if (piece < others) {
        if (threadIdx.x == 0) {
            of_row[piece] = 1ull << 32 | __float_as_uint(partial.value);
        }
        return;
    }
    float sum = threadIdx.x == 0 ? partial.value : 0.0f;
    for (int i = threadIdx.x; i < others; i += THREADS) {
        unsigned long long slot;
        do {
            slot = of_row[i];
        } while (slot == 0);
        of_row[i] = 0;
        sum += __uint_as_float((unsigned)slot);
    }
    partial.value = sum;
    __syncthreads();  // the sums of warps have been read
    partial = over_block(partial);
    if (threadIdx.x == 0) {
        out[row] = partial.out();
    }
}
#endif
