// y[n][m] = x[m][n], or with RELU max(x[m][n], 0), for matrices of few rows or of few columns. The STREAMS rows (or columns) are called streams: each is
// contiguous in one matrix, and in the other matrix STREAMS elements, one of each stream, lie side by side. ELEMENT is float, __half or
// __nv_bfloat16.
//
// A block moves SPAN vectors of every stream through shared memory with 16-byte accesses of global memory on both sides; only its
// accesses of shared memory on the interleaved side are of single elements. A stream starts anywhere in a vector, because its length
// is REST more than whole vectors. The vectors of a stream are those of its matrix, so they are aligned.
#if RELU
#include "relu.cuh"
#endif
#include "vec16.cuh"

using W = Vec16<ELEMENT>;
constexpr int WIDTH = W::WIDTH;
constexpr int SPAN = VECTORS * THREADS / STREAMS;
constexpr int STEP = THREADS * WIDTH / STREAMS;        // elements of a stream in one vector of each thread
constexpr int REMAINDER = STREAMS * REST % WIDTH;      // elements of x after its last whole vector
static_assert(THREADS % STREAMS == 0);

template <typename T> __device__ __forceinline__ T applied(const T& v) {
#if RELU
    return relu(v);
#else
    return v;
#endif
}

// Elements from a vector's begin to the first element of a stream.
__device__ __forceinline__ int skew(int stream) { return stream * REST % WIDTH; }

// Index in shared memory of the first vector of a stream. Pitch and shift avoid most bank conflicts (interleave.py).
__device__ __forceinline__ int first_vector(int stream) { return stream * PITCH + stream / WIDTH * SHIFT; }
constexpr int SHARED = STREAMS * PITCH + STREAMS / WIDTH * SHIFT;

// Index in shared memory of element `i` of the interleaved elements of a tile.
__device__ __forceinline__ int place(int i) { return first_vector(i % STREAMS) * WIDTH + skew(i % STREAMS) + i / STREAMS; }

// Writes those elements of a vector that lie between index 0 and `count` of `to`; the vector begins at index `at`.
__device__ __forceinline__ void store_within(ELEMENT* to, long long at, long long count, const W& vec) {
    if (at >= 0 && at + WIDTH <= count) {
        store_streaming(reinterpret_cast<W*>(to + at), vec);
        return;
    }
#pragma unroll
    for (int i = 0; i < WIDTH; ++i) {
        if (at + i >= 0 && at + i < count) {
            to[at + i] = vec.e[i];
        }
    }
}

#if FEW_ROWS

// Rows of x are the streams. n is at least WIDTH, so that what follows the last whole vector of x is in its last row.
extern "C" __global__ void __launch_bounds__(THREADS) interleave(const ELEMENT* __restrict__ x, ELEMENT* __restrict__ y, long long n) {
    __shared__ W tile[SHARED];
    ELEMENT* elements = reinterpret_cast<ELEMENT*>(tile);
    constexpr int EACH = SPAN + (REST ? 1 : 0);  // vectors in which a tile's part of a stream lies
    constexpr int LOADS = (STREAMS * EACH + THREADS - 1) / THREADS;
    const long long column0 = (long long)blockIdx.x * (SPAN * WIDTH);
    const long long whole = STREAMS * n / WIDTH;
    W loaded[LOADS];
    bool valid[LOADS];
#pragma unroll
    for (int k = 0; k < LOADS; ++k) {
        const int item = threadIdx.x + k * THREADS;
        const int stream = item / EACH, at = item % EACH;
        const long long vec = stream * n / WIDTH + (long long)blockIdx.x * SPAN + at;
        const int offset = at * WIDTH - skew(stream);
        valid[k] = item < STREAMS * EACH && offset < SPAN * WIDTH && column0 + offset < n && vec < whole;
        if (valid[k]) {
            loaded[k] = load_streaming(reinterpret_cast<const W*>(x) + vec);
        }
    }
#pragma unroll
    for (int k = 0; k < LOADS; ++k) {
        const int item = threadIdx.x + k * THREADS;
        if (valid[k]) {
            store_vec16(&tile[first_vector(item / EACH) + item % EACH], applied(loaded[k]));
        }
    }
    if constexpr (REMAINDER) {
        const long long column = n - REMAINDER + (int)threadIdx.x;
        if (threadIdx.x < REMAINDER && column >= column0 && column < column0 + SPAN * WIDTH) {
            elements[first_vector(STREAMS - 1) * WIDTH + skew(STREAMS - 1) + (int)(column - column0)] = applied(x[(STREAMS - 1) * n + column]);
        }
    }
    __syncthreads();
    int places[WIDTH];
#pragma unroll
    for (int i = 0; i < WIDTH; ++i) {
        places[i] = place(threadIdx.x * WIDTH + i);
    }
#pragma unroll
    for (int k = 0; k < VECTORS; ++k) {
        W vec;
        if constexpr (STREAMS == 1) {
            vec = load_vec16(&tile[threadIdx.x + k * THREADS]);
        } else {
#pragma unroll
            for (int i = 0; i < WIDTH; ++i) {
                vec.e[i] = elements[places[i] + k * STEP];
            }
        }
        store_within(y, column0 * STREAMS + (threadIdx.x + k * THREADS) * WIDTH, STREAMS * n, vec);
    }
}

#else

// Columns of x are the streams. Where they start inside vectors of y, a tile's vectors begin up to WIDTH - 1 rows before the tile, so
// the block reads WIDTH more rows.
extern "C" __global__ void __launch_bounds__(THREADS) deinterleave(const ELEMENT* __restrict__ x, ELEMENT* __restrict__ y, long long m) {
    __shared__ W tile[SHARED];
    ELEMENT* elements = reinterpret_cast<ELEMENT*>(tile);
    constexpr int BEFORE = REST ? 1 : 0;  // vectors of a stream
    constexpr int ITEMS = VECTORS * THREADS + BEFORE * STREAMS;
    constexpr int LOADS = VECTORS + BEFORE;
    const long long row0 = (long long)blockIdx.x * (SPAN * WIDTH);
    const long long vec0 = (long long)blockIdx.x * (SPAN * STREAMS) - BEFORE * STREAMS + threadIdx.x;
    const long long whole = STREAMS * m / WIDTH;
    W loaded[LOADS];
    bool valid[LOADS];
#pragma unroll
    for (int k = 0; k < LOADS; ++k) {
        const long long vec = vec0 + k * THREADS;
        valid[k] = (int)threadIdx.x + k * THREADS < ITEMS && vec >= 0 && vec < whole;
        if (valid[k]) {
            loaded[k] = load_streaming(reinterpret_cast<const W*>(x) + vec);
        }
    }
    int places[WIDTH];
#pragma unroll
    for (int i = 0; i < WIDTH; ++i) {
        places[i] = place(threadIdx.x * WIDTH + i);
    }
#pragma unroll
    for (int k = 0; k < LOADS; ++k) {
        if (valid[k]) {
            const W vec = applied(loaded[k]);
#pragma unroll
            for (int i = 0; i < WIDTH; ++i) {
                elements[places[i] + k * STEP] = vec.e[i];
            }
        }
    }
    if constexpr (REMAINDER) {
        if (threadIdx.x < REMAINDER) {
            const long long at = whole * WIDTH + threadIdx.x;
            const long long row = at / STREAMS - row0 + BEFORE * WIDTH;
            if (row >= 0 && row < (SPAN + BEFORE) * WIDTH) {
                const int stream = (int)(at % STREAMS);
                elements[first_vector(stream) * WIDTH + skew(stream) + (int)row] = applied(x[at]);
            }
        }
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < VECTORS; ++k) {
        const int item = threadIdx.x + k * THREADS;
        const int stream = item / SPAN, at = item % SPAN;
        const W vec = load_vec16(&tile[first_vector(stream) + BEFORE + at]);
        store_within(y + stream * m, row0 + at * WIDTH - skew(stream), m, vec);
    }
}

#endif
