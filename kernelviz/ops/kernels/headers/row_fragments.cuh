// Rows of what a warpgroup's tensor core instructions compute (64×COLUMNS, fp32, in registers) to memory, 16 bytes a thread. A thread has of each
// 16 rows of its warp two, `lane / 4` and eight further, and of each eight columns two neighbouring ones.
#pragma once

__device__ __forceinline__ unsigned pair(float low, float high) {
    const ELEMENT two[2] = {static_cast<ELEMENT>(low), static_cast<ELEMENT>(high)};
    return *reinterpret_cast<const unsigned*>(two);
}

// The row of a tile that a thread of a warpgroup has, of the two that it has.
__device__ __forceinline__ int row_of_thread(int half) {
    const int t = threadIdx.x % 128;
    return t / 32 * 16 + t % 32 / 4 + 8 * half;
}

// One of the two rows of each thread. The four threads of a row exchange what they have of 32 columns, so that each has eight neighbouring
// ones. By whole warps; a row with `inside` false is not written.
template <int Sums> __device__ __forceinline__ void store_row(const float (&sums)[Sums], int half, ELEMENT* row, bool inside) {
    const int quarter = threadIdx.x % 4;
#pragma unroll
    for (int columns = 0; columns < 2 * Sums; columns += 32) {
        unsigned mine[4], all[4];
#pragma unroll
        for (int eight = 0; eight < 4; ++eight) {
            const float* part = sums + columns / 2 + 4 * eight + 2 * half;
            mine[eight] = pair(part[0], part[1]);
        }
        // In round i, each thread sends what the thread with the number `quarter ^ i` of the four stores.
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int other = quarter ^ i;
            const unsigned sent = other == 0 ? mine[0] : other == 1 ? mine[1] : other == 2 ? mine[2] : mine[3];
            const unsigned received = __shfl_xor_sync(~0u, sent, i);
            all[0] = other == 0 ? received : all[0];
            all[1] = other == 1 ? received : all[1];
            all[2] = other == 2 ? received : all[2];
            all[3] = other == 3 ? received : all[3];
        }
        if (inside) {
            *reinterpret_cast<uint4*>(row + columns + 8 * quarter) = make_uint4(all[0], all[1], all[2], all[3]);
        }
    }
}
