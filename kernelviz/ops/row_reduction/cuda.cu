// CUDA C++ kernels of `row_sum` and, with -DARGMAX, of `argmax`. ELEMENT is float, __half or __nv_bfloat16; sums are in fp32.
#include "vec16.cuh"

#ifndef THREADS
#define THREADS 256
#endif
constexpr int VECTORS = 4;  // 16-byte vectors of a thread in flight at once
constexpr int WIDTH = Vec16<ELEMENT>::WIDTH;
constexpr int NOWHERE = 0x7fffffff;

#ifdef ARGMAX
typedef long long OUT;
// The largest number met and where; of equal ones the first, and NaN above all, as torch has it.
struct Found {
    float value = -__int_as_float(0x7f800000);
    int at = NOWHERE;
    // Places come in ascending order, so what is not larger does not replace.
    __device__ __forceinline__ void take(float v, int i) {
        if (!(v <= value) && value == value) {
            value = v;
            at = i;
        }
    }
    __device__ __forceinline__ void merge(const Found& other) {
        const bool mine_nan = value != value, its_nan = other.value != other.value;
        const bool larger = its_nan ? !mine_nan : other.value > value;
        const bool level = its_nan ? mine_nan : other.value == value;
        if (larger || (level && other.at < at)) {
            *this = other;
        }
    }
    __device__ __forceinline__ Found from(int apart) const {
        Found other;
        other.value = __shfl_xor_sync(0xffffffffu, value, apart);
        other.at = __shfl_xor_sync(0xffffffffu, at, apart);
        return other;
    }
    // Where nothing was above -inf, the row is -inf throughout and its first place as good as any.
    __device__ __forceinline__ OUT out() const { return at == NOWHERE ? 0 : at; }
};
#else
typedef ELEMENT OUT;
struct Found {
    float value = 0.0f;
    int at = 0;
    __device__ __forceinline__ void take(float v, int) { value += v; }
    __device__ __forceinline__ void merge(const Found& other) { value += other.value; }
    __device__ __forceinline__ Found from(int apart) const {
        Found other;
        other.value = __shfl_xor_sync(0xffffffffu, value, apart);
        return other;
    }
    __device__ __forceinline__ OUT out() const { return from_float<ELEMENT>(value); }
};
#endif

__device__ __forceinline__ void take_word(Found& found, const Vec16<ELEMENT>& vector, int first) {
#pragma unroll
    for (int k = 0; k < WIDTH; ++k) {
        found.take(to_float(vector.e[k]), first + k);
    }
}

// What `lane` of LANES threads finds in x[first .. last). Rows start anywhere in a 16-byte vector, so the elements before the
// first whole one and behind the last are taken by themselves.
template <int LANES> __device__ __forceinline__ Found walk(const ELEMENT* x, int first, int last, int lane) {
    Found found;
    const int n = last - first;
    const int before = (16 - reinterpret_cast<unsigned long long>(x + first) % 16) % 16 / sizeof(ELEMENT);
    const int head = before < n ? before : n;
    const int count = (n - head) / WIDTH;
    const int begin = first + head;
    const Vec16<ELEMENT>* vectors = reinterpret_cast<const Vec16<ELEMENT>*>(x + begin);
    if (lane < head) {
        found.take(to_float(x[first + lane]), first + lane);
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
            take_word(found, vector[k], begin + (i + k * LANES) * WIDTH);
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
            take_word(found, vector[k], begin + (i + k * LANES) * WIDTH);
        }
    }
    const int tail = begin + count * WIDTH + lane;
    if (tail < last) {
        found.take(to_float(x[tail]), tail);
    }
    return found;
}

// Over a warp, in every lane.
__device__ __forceinline__ Found over_warp(Found found) {
#pragma unroll
    for (int apart = 16; apart > 0; apart /= 2) {
        found.merge(found.from(apart));
    }
    return found;
}

// Over a block, in every lane of its first warp.
__device__ __forceinline__ Found over_block(Found found) {
    __shared__ float values[32];
    __shared__ int places[32];
    found = over_warp(found);
    if (THREADS == 32) {
        return found;
    }
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (lane == 0) {
        values[warp] = found.value;
        places[warp] = found.at;
    }
    __syncthreads();
    if (warp == 0) {
        found = Found();
        if (lane < THREADS / 32) {
            found.value = values[lane];
            found.at = places[lane];
        }
        found = over_warp(found);
    }
    return found;
}

// 1. A thread walks a row alone: neighbouring threads read addresses a row apart, a sector for each element.
extern "C" __global__ void __launch_bounds__(128) row_per_thread(
    const ELEMENT* __restrict__ x, OUT* __restrict__ out, int m, int n) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= m) {
        return;
    }
    Found found;
    for (int i = 0; i < n; ++i) {
        found.take(to_float(x[(long long)row * n + i]), i);
    }
    out[row] = found.out();
}

// 2. A warp a row, eight rows a block: no thread waits for another warp.
extern "C" __global__ void __launch_bounds__(256) row_per_warp(
    const ELEMENT* __restrict__ x, OUT* __restrict__ out, int m, int n) {
    const long long row = (long long)blockIdx.x * 8 + threadIdx.x / 32;
    if (row >= m) {
        return;
    }
    const Found found = over_warp(walk<32>(x + row * n, 0, n, threadIdx.x % 32));
    if (threadIdx.x % 32 == 0) {
        out[row] = found.out();
    }
}

// 3. A block a row: long rows are spread over enough threads to keep the memory busy.
extern "C" __global__ void __launch_bounds__(THREADS) row_per_block(
    const ELEMENT* __restrict__ x, OUT* __restrict__ out, int m, int n) {
    const long long row = blockIdx.x;
    const Found found = over_block(walk<THREADS>(x + row * n, 0, n, threadIdx.x));
    if (threadIdx.x == 0) {
        out[row] = found.out();
    }
}

// 4. `splits` blocks a row, each `part` elements of it; the one of a row that is done last merges what they found, in order of
// their places. `tickets` count the finished blocks of each row and are 0 again when the last one has taken its ticket.
extern "C" __global__ void __launch_bounds__(THREADS) row_split(
    const ELEMENT* __restrict__ x, float* __restrict__ values, int* __restrict__ places, unsigned* __restrict__ tickets,
    OUT* __restrict__ out, int n, int splits, int part) {
    const long long row = blockIdx.x / splits;
    const int piece = blockIdx.x % splits;
    const int first = piece * part;
    const int last = n - first < part ? n : first + part;
    Found found = over_block(walk<THREADS>(x + row * n, first, last, threadIdx.x));
    if (threadIdx.x >= 32) {
        return;
    }
    unsigned before = 0;
    if (threadIdx.x == 0) {
        values[blockIdx.x] = found.value;
        places[blockIdx.x] = found.at;
        __threadfence();
        before = atomicInc(tickets + row, splits - 1);
    }
    if (__shfl_sync(0xffffffffu, before, 0) != splits - 1) {
        return;
    }
    __threadfence();
    found = Found();
    for (int k = threadIdx.x; k < splits; k += 32) {
        Found other;
        other.value = __ldcg(values + row * splits + k);
        other.at = __ldcg(places + row * splits + k);
        found.merge(other);
    }
    found = over_warp(found);
    if (threadIdx.x == 0) {
        out[row] = found.out();
    }
}
