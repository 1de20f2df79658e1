// CUDA C++ kernels of `cumsum`. ELEMENT is float, __half or __nv_bfloat16; sums are made in fp32 and rounded once an element.
#include "vec16.cuh"

#ifndef THREADS
#define THREADS 256
#endif
#ifndef VECTORS
#define VECTORS 4
#endif
constexpr int WIDTH = Vec16<ELEMENT>::WIDTH;
constexpr int TILE = THREADS * VECTORS * WIDTH;
constexpr unsigned ALL = 0xffffffffu;

// Sums of lanes 0 .. this one.
__device__ __forceinline__ float warp_scan(float v) {
#pragma unroll
    for (int apart = 1; apart < 32; apart *= 2) {
        const float before = __shfl_up_sync(ALL, v, apart);
        v += threadIdx.x % 32 >= apart ? before : 0.0f;
    }
    return v;
}
__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
    for (int apart = 16; apart > 0; apart /= 2) {
        v += __shfl_xor_sync(ALL, v, apart);
    }
    return v;
}

// A tile of THREADS * VECTORS vectors of 16 bytes: a warp has 32 * VECTORS adjacent ones, a thread every 32nd of them.
struct Tile {
    Vec16<ELEMENT> vector[VECTORS];
    float before[VECTORS];  // the sum of all elements of the warp before each vector
    float total;          // of the warp

    __device__ __forceinline__ static long long vector_index(long long tile, int k) {
        return (tile * THREADS + threadIdx.x / 32 * 32) * VECTORS + k * 32 + threadIdx.x % 32;
    }
    // Vectors beyond the end hold zeros. A vector that is not whole, or a view that starts inside a vector, is read element by element.
    __device__ __forceinline__ void load(const ELEMENT* x, long long tile, long long n, bool aligned) {
        if (aligned && (tile + 1) * TILE <= n) {
#pragma unroll
            for (int k = 0; k < VECTORS; ++k) {
                vector[k] = load_streaming(reinterpret_cast<const Vec16<ELEMENT>*>(x) + vector_index(tile, k));
            }
            return;
        }
#pragma unroll
        for (int k = 0; k < VECTORS; ++k) {
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) {
                const long long i = vector_index(tile, k) * WIDTH + e;
                vector[k].e[e] = i < n ? x[i] : from_float<ELEMENT>(0.0f);
            }
        }
    }
    __device__ __forceinline__ void scan() {
        total = 0.0f;
#pragma unroll
        for (int k = 0; k < VECTORS; ++k) {
            float sum = 0.0f;
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) {
                sum += to_float(vector[k].e[e]);
            }
            const float upto = warp_scan(sum);
            const float left = __shfl_up_sync(ALL, upto, 1);
            before[k] = total + (threadIdx.x % 32 > 0 ? left : 0.0f);
            total += __shfl_sync(ALL, upto, 31);
        }
    }
    // `base`: the sum of everything before the warp.
    __device__ __forceinline__ void store(ELEMENT* out, long long tile, long long n, float base) {
        const bool whole = (tile + 1) * TILE <= n;
#pragma unroll
        for (int k = 0; k < VECTORS; ++k) {
            float sum = base + before[k];
            Vec16<ELEMENT> sums;
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) {
                sum += to_float(vector[k].e[e]);
                sums.e[e] = from_float<ELEMENT>(sum);
            }
            if (whole) {
                store_streaming(reinterpret_cast<Vec16<ELEMENT>*>(out) + vector_index(tile, k), sums);
            } else {
#pragma unroll
                for (int e = 0; e < WIDTH; ++e) {
                    const long long i = vector_index(tile, k) * WIDTH + e;
                    if (i < n) {
                        out[i] = sums.e[e];
                    }
                }
            }
        }
    }
};

// The sums of the warps before this one and of all, from every warp's own.
__device__ __forceinline__ float over_warps(float mine, float* of_warp, float& total) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    constexpr int WARPS = THREADS / 32;
    if (lane == 0) {
        of_warp[warp] = mine;
    }
    __syncthreads();
    const float upto = warp_scan(lane < WARPS ? of_warp[lane] : 0.0f);
    total = __shfl_sync(ALL, upto, WARPS - 1);
    const float left = __shfl_sync(ALL, upto, warp > 0 ? warp - 1 : 0);
    return warp > 0 ? left : 0.0f;
}

// 1 to 3: the sums of tiles; the sum before each tile, by one block; the scan of each tile from that sum. x is read twice.
extern "C" __global__ void __launch_bounds__(THREADS) cumsum_tile_sums(
    const ELEMENT* __restrict__ x, float* __restrict__ sums, long long n, bool aligned) {
    __shared__ float of_warp[32];
    Tile tile;
    tile.load(x, blockIdx.x, n, aligned);
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < VECTORS; ++k) {
#pragma unroll
        for (int e = 0; e < WIDTH; ++e) {
            sum += to_float(tile.vector[k].e[e]);
        }
    }
    float total;
    over_warps(warp_sum(sum), of_warp, total);
    if (threadIdx.x == 0) {
        sums[blockIdx.x] = total;
    }
}
extern "C" __global__ void __launch_bounds__(THREADS) cumsum_before_tiles(float* __restrict__ sums, int tiles) {
    __shared__ float of_warp[32];
    float carry = 0.0f;
    for (int first = 0; first < tiles; first += THREADS) {
        const int i = first + threadIdx.x;
        const float upto = warp_scan(i < tiles ? sums[i] : 0.0f);
        const float left = __shfl_up_sync(ALL, upto, 1);
        float total;
        const float base = over_warps(__shfl_sync(ALL, upto, 31), of_warp, total);
        if (i < tiles) {
            sums[i] = carry + base + (threadIdx.x % 32 > 0 ? left : 0.0f);
        }
        carry += total;
        __syncthreads();
    }
}
extern "C" __global__ void __launch_bounds__(THREADS) cumsum_from_sums(
    const ELEMENT* __restrict__ x, const float* __restrict__ sums, ELEMENT* __restrict__ out, long long n, bool aligned) {
    __shared__ float of_warp[32];
    Tile tile;
    tile.load(x, blockIdx.x, n, aligned);
    tile.scan();
    float total;
    const float base = over_warps(tile.total, of_warp, total);
    tile.store(out, blockIdx.x, n, sums[blockIdx.x] + base);
}

// What a tile publishes, in one 64-bit number, so that no reader sees half of it: the sum in the lower half; in the upper half
// twice the number of the call, plus 1 when the sum reaches back to the beginning. Numbers of earlier calls count as not written.
// A single number needs no order relative to others: relaxed loads and stores suffice.
__device__ __forceinline__ void publish(unsigned long long* state, unsigned call, bool from_start, float sum) {
    const unsigned long long vector = (unsigned long long)(2 * call + from_start) << 32 | __float_as_uint(sum);
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(state), "l"(vector) : "memory");
}
__device__ __forceinline__ unsigned long long look(const unsigned long long* state) {
    unsigned long long vector;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(vector) : "l"(state) : "memory");
    return vector;
}

// The sum of all tiles before this one, by a warp that reads WINDOWS times 32 of them at once and goes back until one has
// the sum from the beginning: each read is a round trip to L2, so there should be few.
__device__ __forceinline__ float before_tile(const unsigned long long* states, int tile, unsigned call) {
    constexpr int WINDOWS = 4;
    const int lane = threadIdx.x % 32;
    float sum = 0.0f;
    for (int at = tile - 1 - lane;; at -= 32 * WINDOWS) {
        unsigned long long seen[WINDOWS];
#pragma unroll
        for (int w = 0; w < WINDOWS; ++w) {
            // Before the first tile the sum is 0.
            seen[w] = at - 32 * w >= 0 ? look(states + at - 32 * w) : (unsigned long long)(2 * call + 1) << 32;
        }
#pragma unroll
        for (int w = 0; w < WINDOWS; ++w) {
            while (!__all_sync(ALL, (unsigned)(seen[w] >> 33) == call)) {
                if ((unsigned)(seen[w] >> 33) != call) {
                    seen[w] = look(states + at - 32 * w);
                }
            }
            const unsigned known = __ballot_sync(ALL, seen[w] >> 32 & 1);
            const int nearest = known ? __ffs(known) - 1 : 31;
            sum += warp_sum(lane <= nearest ? __uint_as_float((unsigned)seen[w]) : 0.0f);
            if (known) {
                return sum;
            }
        }
    }
}

// 4. One pass: a block gets the next tile, scans it, publishes its sum, and reads from the tiles before it the sum before it.
// control: the next tile, the number of finished blocks, the number of the call. The last block resets the first two.
extern "C" __global__ void __launch_bounds__(THREADS) cumsum_look_back(
    const ELEMENT* __restrict__ x, ELEMENT* __restrict__ out, unsigned long long* states, unsigned* control, long long n,
    bool aligned) {
    __shared__ float of_warp[32];
    __shared__ unsigned ticket[2];
    __shared__ float before;
    if (threadIdx.x == 0) {
        // In the order in which blocks actually start, so that a tile never waits for one whose block has not started.
        ticket[1] = *reinterpret_cast<volatile unsigned*>(control + 2);
        ticket[0] = atomicAdd(control, 1);
    }
    __syncthreads();
    const unsigned number = ticket[0], call = ticket[1];
    Tile tile;
    tile.load(x, number, n, aligned);
    tile.scan();
    float total;
    const float base = over_warps(tile.total, of_warp, total);
    if (threadIdx.x < 32) {
        if (threadIdx.x == 0 && number > 0) {
            publish(states + number, call, false, total);
        }
        const float sum = before_tile(states, number, call);
        if (threadIdx.x == 0) {
            publish(states + number, call, true, sum + total);
            before = sum;
        }
    }
    __syncthreads();
    tile.store(out, number, n, before + base);
    if (threadIdx.x == 0 && atomicInc(control + 1, gridDim.x - 1) == gridDim.x - 1) {
        control[0] = 0;
        control[2] = call + 1;
    }
}
