// `row_sum`, a block a row: each thread prefetches its next vectors while it adds the last ones, so that no iteration waits for a whole
// batch. Of a few short rows each thread has one vector.
//
// ROW_LANES threads a row, each with up to 2 * ROW_GROUP vectors in flight; ROW_RESIDENT blocks on an SM. ROW_ALIGNED=true: rows are
// whole vectors. ELEMENT is float, __half or __nv_bfloat16; sums are in fp32.
#include "conversions.cuh"
#include "streamed_rows.cuh"

using P = RowPiece<ELEMENT>;
constexpr int WIDTH = P::WIDTH;

struct Sum {
    float value = 0.0f;

    template <int APART, int COUNT> __device__ __forceinline__ void group(const uint4 (&w)[COUNT], int) {
#pragma unroll
        for (int k = 0; k < COUNT; ++k) {
            float v[WIDTH];
            widen(*reinterpret_cast<const Vec16<ELEMENT>*>(&w[k]), v);
#pragma unroll
            for (int pairs = WIDTH / 2; pairs > 0; pairs /= 2) {
#pragma unroll
                for (int e = 0; e < pairs; ++e) {
                    v[e] += v[e + pairs];
                }
            }
            value += v[0];
        }
    }
};

__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
        v += __shfl_xor_sync(0xffffffffu, v, distance);
    }
    return v;
}

extern "C" __global__ void __launch_bounds__(ROW_LANES, ROW_RESIDENT) row_sum_streamed(
    const ELEMENT* __restrict__ x, ELEMENT* __restrict__ out, int n) {
    const int lane = threadIdx.x;
    const P row = P::of<ROW_ALIGNED>(x + (long long)blockIdx.x * n, n);
    ELEMENT first = ELEMENT(0.0f), last = first;
    if (!ROW_ALIGNED) {
        const int tail = row.behind() + lane;
        if (lane < row.before) {
            first = row.x[lane];
        }
        if (tail < n) {
            last = row.x[tail];
        }
    }
    Sum sum;
    stream<ROW_LANES, ROW_GROUP>(row.vectors(), row.count, lane, make_uint4(0, 0, 0, 0), sum);
    float total = warp_sum(sum.value + (to_float(first) + to_float(last)));
    if constexpr (ROW_LANES > 32) {
        __shared__ float of_warp[ROW_LANES / 32];
        if (lane % 32 == 0) {
            of_warp[lane / 32] = total;
        }
        __syncthreads();
        if (lane >= 32) {
            return;
        }
        total = warp_sum(lane < ROW_LANES / 32 ? of_warp[lane] : 0.0f);
    }
    if (lane == 0) {
        out[blockIdx.x] = from_float<ELEMENT>(total);
    }
}
