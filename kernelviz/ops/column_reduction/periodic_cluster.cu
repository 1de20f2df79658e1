// CUDA C++ kernel of `column_sum` for few columns of a small matrix, by one cluster, compiled for its size. ELEMENT is float, __half or
// __nv_bfloat16; sums are in fp32. Each block sums its part of the matrix by columns and stores what it has in the shared memory of the first
// one, so that one cluster barrier is all that the blocks wait for. Loops are unrolled in part only, because a short kernel waits for each fetch of its code.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "cluster_gather.cuh"
#include "loads_first.cuh"
#include "skinny.cuh"

// SIZE: elements of N columns. SHIFT: elements by which the matrix starts behind a multiple of 16 bytes. CLUSTER blocks of THREADS, with
// PARTS times BLOCK_VECTORS 16-byte vectors each, a multiple of N elements: so each part starts with the same column. All parts of a block are
// loaded at once, and pass through shared memory one after the other.
#ifndef SIZE
#define SIZE 8
#define N 1
#define SHIFT 0
#define CLUSTER 1
#define THREADS 32
#define PARTS 1
#define BLOCK_VECTORS 1
#endif
constexpr int WIDTH = 16 / sizeof(ELEMENT), BLOCK_ELEMENTS = BLOCK_VECTORS * WIDTH;
constexpr int VECTORS = (BLOCK_VECTORS + THREADS - 1) / THREADS;
constexpr bool ALL_LOAD = VECTORS * THREADS == BLOCK_VECTORS;
// Vectors from FIRST_WHOLE to END_WHOLE lie within the matrix; the one before and the one behind may do in part.
constexpr int FIRST_WHOLE = SHIFT > 0, END_WHOLE = (SHIFT + SIZE) / WIDTH;
constexpr bool TAIL = (SHIFT + SIZE) % WIDTH != 0;
// Threads that each have one column of some rows. For a power of two below 32, lanes add up further rows.
constexpr int ACTIVE = THREADS / N * N, ROUNDS = (BLOCK_ELEMENTS + ACTIVE - 1) / ACTIVE;
constexpr bool BY_LANES = N < 32 && (N & (N - 1)) == 0;
constexpr int COPIES = BY_LANES ? THREADS / 32 : ACTIVE / N;

// Loops of up to MOST_UNROLLED rounds are unrolled, others in part.
constexpr int MOST_UNROLLED = 8;
__device__ constexpr int unrolled(int rounds) { return rounds <= MOST_UNROLLED ? rounds : MOST_UNROLLED / 2; }

// Lanes that add up `copies` numbers of a column, a power of two.
__device__ constexpr int lanes_of(int copies) {
    int lanes = 1;
    while (lanes < 32 && lanes < copies && 2 * lanes * N <= THREADS) {
        lanes *= 2;
    }
    return lanes;
}
// Whether the first block adds up all that threads have; else each block first adds up its own.
constexpr bool AT_ONCE = CLUSTER == 1 || (CLUSTER * COPIES <= 8 * lanes_of(CLUSTER * COPIES) && CLUSTER * COPIES * N <= 2048);
constexpr int RECEIVED = CLUSTER * (AT_ONCE ? COPIES : 1);

// The sums of columns of which there are COUNT numbers, N apart: that of column t / lanes_of(COUNT) in the first of its threads t.
template <int COUNT> __device__ __forceinline__ float column_sum(const float* numbers) {
    constexpr int LANES = lanes_of(COUNT), COLUMN_ROUNDS = (COUNT + LANES - 1) / LANES;
    const int column = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    float sum = 0.0f;
    if (column < N) {
#pragma unroll(unrolled(COLUMN_ROUNDS))
        for (int r = 0; r < COLUMN_ROUNDS; ++r) {
            const int i = r * LANES + lane;
            sum += COUNT % LANES == 0 || i < COUNT ? numbers[i * N + column] : 0.0f;
        }
    }
#pragma unroll
    for (int apart = LANES / 2; apart > 0; apart /= 2) {
        sum = sum_of_two_lanes(sum, apart);
    }
    return sum;
}

// A cluster that the compiler knows needs no test of whether there is one.
extern "C" __global__ void __launch_bounds__(THREADS, 1) __cluster_dims__(CLUSTER, 1, 1)
    column_periodic_cluster(const ELEMENT* __restrict__ x, ELEMENT* __restrict__ out) {
    __shared__ __align__(16) ELEMENT elements[BLOCK_ELEMENTS];
    __shared__ float own[AT_ONCE ? 1 : COPIES * N];
    __shared__ float received[RECEIVED * N];
    if constexpr (CLUSTER > 1) {
        block_has_started();
    }
    const int t = threadIdx.x, block = CLUSTER > 1 ? block_in_cluster() : 0;
    const int first = block * PARTS * BLOCK_VECTORS + t;
    const uint4* vectors = reinterpret_cast<const uint4*>(x - SHIFT) + first;
    uint4 bits[PARTS * VECTORS];
#pragma unroll
    for (int v = 0; v < PARTS * VECTORS; ++v) {
        const int of_part = v % VECTORS * THREADS, at = v / VECTORS * BLOCK_VECTORS + of_part, vector = first + at;
        const bool whole = (ALL_LOAD || of_part + t < BLOCK_VECTORS) && (FIRST_WHOLE == 0 || vector > 0) && vector < END_WHOLE;
        bits[v] = whole ? __ldg(vectors + at) : uint4{};
    }
    // The vectors that lie within the matrix in part, an element a thread.
    constexpr int TAIL_PART = END_WHOLE / BLOCK_VECTORS;
    const bool edge =
        (SHIFT > 0 && t < WIDTH && block == 0) || (TAIL && t >= WIDTH && t < 2 * WIDTH && block == TAIL_PART / PARTS);
    const int place = t < WIDTH ? t : END_WHOLE * WIDTH + t - WIDTH;
    ELEMENT element = static_cast<ELEMENT>(0.0f);
    if (edge && place >= SHIFT && place < SHIFT + SIZE) {
        element = __ldg(x + (place - SHIFT));
    }
    loads_first(bits);
    float sum = 0.0f;
#pragma unroll
    for (int part = 0; part < PARTS; ++part) {
#pragma unroll
        for (int v = 0; v < VECTORS; ++v) {
            const int vector = first + part * BLOCK_VECTORS + v * THREADS;
            if ((ALL_LOAD || v * THREADS + t < BLOCK_VECTORS) && (FIRST_WHOLE == 0 || vector > 0) && !(TAIL && vector == END_WHOLE)) {
                reinterpret_cast<uint4*>(elements)[v * THREADS + t] = bits[part * VECTORS + v];
            }
        }
        if (edge && part == (t < WIDTH ? 0 : TAIL_PART % PARTS)) {
            elements[place - (t < WIDTH ? 0 : TAIL_PART * BLOCK_ELEMENTS)] = element;
        }
        __syncthreads();
        if (ACTIVE == THREADS || t < ACTIVE) {
#pragma unroll(unrolled(ROUNDS))
            for (int r = 0; r < ROUNDS; ++r) {
                const int i = r * ACTIVE + t;
                const bool there = BLOCK_ELEMENTS % ACTIVE == 0 || r + 1 < ROUNDS || i < BLOCK_ELEMENTS;
                sum += there ? static_cast<float>(elements[i]) : 0.0f;
            }
        }
        if (part + 1 < PARTS) {
            __syncthreads();  // before the next part is stored
        }
    }
    if constexpr (BY_LANES) {
#pragma unroll
        for (int apart = 16; apart >= N; apart /= 2) {
            sum = sum_of_two_lanes(sum, apart);
        }
    }
    bool has_sum = BY_LANES ? t % 32 < N : t < ACTIVE;
    int number = BY_LANES ? t / 32 * N + t % 32 : t;
    if constexpr (!AT_ONCE) {
        if (has_sum) {
            own[number] = sum;
        }
        __syncthreads();
        sum = column_sum<COPIES>(own);
        has_sum = t % lanes_of(COPIES) == 0 && t < N * lanes_of(COPIES);
        number = t / lanes_of(COPIES);
    }
    if constexpr (CLUSTER > 1) {
        __syncwarp();
        wait_for_started();
        if (has_sum) {
            store_in_block(0, received + block * (RECEIVED / CLUSTER * N) + number, sum);
        }
        block_has_stored();
        if (block > 0) {
            return;
        }
        wait_for_stored();
    } else {
        if (has_sum) {
            received[number] = sum;
        }
        __syncthreads();
    }
    sum = column_sum<RECEIVED>(received);
    const unsigned column = threadIdx.x / lanes_of(RECEIVED);
    if (t % lanes_of(RECEIVED) == 0 && column < N) {
        constexpr unsigned TURN = SHIFT % N;
        out[column >= TURN ? column - TURN : column - TURN + N] = static_cast<ELEMENT>(sum);
    }
}
