// CUDA C++ kernels of `cumsum` of few elements. ELEMENT is float, __half or __nv_bfloat16; sums are made in fp32 and rounded once an element.
#include "cluster_gather.cuh"
#include "vec16.cuh"

// 16-byte vectors of a thread in flight at once.
#ifndef VECTORS
#define VECTORS 1
#endif
constexpr int WIDTH = Vec16<ELEMENT>::WIDTH;
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

// BLOCKS blocks of whole warps, this one number `block`, scan a tile of blockDim.x * VECTORS vectors each; one block alone then scans the next
// tile. A warp has 32 * VECTORS adjacent vectors of a tile, a thread every 32nd of them. `aligned`: whether x starts on 16 bytes, as out does.
template <int BLOCKS>
__device__ __forceinline__ void scan(
    const ELEMENT* __restrict__ x, ELEMENT* __restrict__ out, long long n, bool aligned, int block) {
    __shared__ float of_warp[32];
    __shared__ float of_block[BLOCKS];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    float carry = 0.0f;
    const long long of_tile = VECTORS * blockDim.x;
    for (long long tile = 0; tile * WIDTH < n; tile += BLOCKS * of_tile) {
        const long long mine = tile + block * of_tile + warp * 32 * VECTORS + lane;
        Vec16<ELEMENT> vector[VECTORS];
        // The vector that is not whole is read element by element, together with the whole ones, so that all loads are in flight at once.
        const long long partial = n / WIDTH;
        const bool has_partial = partial >= mine && partial < mine + 32 * VECTORS && (partial - mine) % 32 == 0;
        Vec16<ELEMENT> last{};
#pragma unroll
        for (int e = 0; e < WIDTH - 1; ++e) {
            if (has_partial && partial * WIDTH + e < n) {
                last.e[e] = x[partial * WIDTH + e];
            }
        }
#pragma unroll
        for (int k = 0; k < VECTORS; ++k) {
            const long long i = mine + k * 32;
            const bool whole = aligned && i < partial;
            vector[k] = whole ? load_vec16(reinterpret_cast<const Vec16<ELEMENT>*>(x) + i) : Vec16<ELEMENT>{};
        }
#pragma unroll
        for (int k = 0; k < VECTORS; ++k) {
            const long long i = mine + k * 32;
            if (i == partial) {
                vector[k] = last;
            } else if (!aligned && i < partial) {
#pragma unroll
                for (int e = 0; e < WIDTH; ++e) {
                    vector[k].e[e] = x[i * WIDTH + e];
                }
            }
        }
        float before[VECTORS], total = 0.0f;
#pragma unroll
        for (int k = 0; k < VECTORS; ++k) {
            float sum = 0.0f;
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) {
                sum += to_float(vector[k].e[e]);
            }
            const float upto = warp_scan(sum);
            const float left = __shfl_up_sync(ALL, upto, 1);
            before[k] = total + (lane > 0 ? left : 0.0f);
            total += __shfl_sync(ALL, upto, 31);
        }
        float base = carry;
        if (warps > 1) {
            if (lane == 0) {
                of_warp[warp] = total;
            }
            __syncthreads();
            const float upto = warp_scan(lane < warps ? of_warp[lane] : 0.0f);
            const float left = __shfl_sync(ALL, upto, warp > 0 ? warp - 1 : 0);
            base += warp > 0 ? left : 0.0f;
            total = __shfl_sync(ALL, upto, 31);
            __syncthreads();  // the next tile writes of_warp
        }
        carry += total;
        if constexpr (BLOCKS > 1) {
            gather<BLOCKS>(total, of_block);
#pragma unroll
            for (int b = 0; b < BLOCKS - 1; ++b) {
                base += b < block ? of_block[b] : 0.0f;
            }
        }
#pragma unroll
        for (int k = 0; k < VECTORS; ++k) {
            const long long i = mine + k * 32;
            float sum = base + before[k];
            Vec16<ELEMENT> sums;
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) {
                sum += to_float(vector[k].e[e]);
                sums.e[e] = from_float<ELEMENT>(sum);
            }
            if ((i + 1) * WIDTH <= n) {
                store_vec16(reinterpret_cast<Vec16<ELEMENT>*>(out) + i, sums);
            } else {
#pragma unroll
                for (int e = 0; e < WIDTH; ++e) {
                    if (i * WIDTH + e < n) {
                        out[i * WIDTH + e] = sums.e[e];
                    }
                }
            }
        }
    }
}

// One block: no tile waits for the sum of another block.
extern "C" __global__ void __launch_bounds__(1024, 1) cumsum_one_block(
    const ELEMENT* __restrict__ x, ELEMENT* __restrict__ out, long long n, bool aligned) {
    scan<1>(x, out, n, aligned, 0);
}

// One cluster, whose blocks exchange the sums of their tiles through shared memory. n is at most what their tiles hold.
constexpr int CLUSTER = 8;
extern "C" __global__ void __launch_bounds__(1024, 1) cumsum_cluster(
    const ELEMENT* __restrict__ x, ELEMENT* __restrict__ out, long long n, bool aligned) {
    block_has_started();
    scan<CLUSTER>(x, out, n, aligned, block_in_cluster());
}
