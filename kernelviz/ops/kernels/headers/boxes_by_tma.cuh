// A warpgroup's tile of a product, 64×COLUMNS fp32 in registers as wgmma leaves them, to a matrix of ELEMENT by TMA (sm_90a only). The file that
// includes this includes tma.cuh and warpgroups.cuh first, and defines COLUMNS (a multiple of 16), C_BOXES (boxes of shared memory of a warpgroup; 0:
// there is only `pair`) and ELEMENT. The processor runs it as it is (tests/ops/cuda/boxes_by_tma.cuh).
#pragma once

__device__ __forceinline__ unsigned pair(float low, float high) {
    const ELEMENT two[2] = {static_cast<ELEMENT>(low), static_cast<ELEMENT>(high)};
    return *reinterpret_cast<const unsigned*>(two);
}

#if C_BOXES
// Through shared memory, a box of 64 columns at a time, with TMA's swizzle: the eight rows of a matrix lie in different banks. By all threads of a
// warpgroup; the first one waits for the last stores (`store_wait`) before the block ends. `finish` changes the sums of a box, which it gets with the box's
// number, before they are rounded. If COLUMNS is no multiple of 64, the last box is narrower, and has the map after `map`.
template <typename Finish>
__device__ __forceinline__ void store_by_tma(
    float (&sums)[COLUMNS / 2], unsigned boxes, const char* map, int row0, int column0, int warpgroup, const Finish& finish) {
    constexpr int BOX = 64 * 64 * 2, BOXES = (COLUMNS + 63) / 64;  // bytes of a box of shared memory; boxes of the tile
    static_assert(BOXES % C_BOXES == 0, "a box is filled again after as many stores as there are boxes");
    const int t = threadIdx.x % 128;
    const int lane = t % 32;
    // The matrices of a store: rows 0 to 7 and 8 to 15 of eight columns, and of the next eight columns.
    const int row = t / 32 * 16 + lane / 8 % 2 * 8 + lane % 8;
    const int next_eight = lane / 16;
#pragma unroll
    for (int box = 0; box < BOXES; ++box) {
        const unsigned to = boxes + box % C_BOXES * BOX;
        if (t == 0) {
            store_wait_read<C_BOXES - 1>();  // the store that read this box has ended
        }
        warpgroup_barrier(warpgroup);
        finish(sums + 32 * box, box);
#pragma unroll
        for (int eight = 0; eight < 8 && 64 * box + 8 * eight < COLUMNS; eight += 2) {
            const float* part = sums + 32 * box + 4 * eight;
            store_matrices(
                to + row * 128 + ((eight + next_eight ^ lane % 8) << 4), pair(part[0], part[1]), pair(part[2], part[3]),
                pair(part[4], part[5]), pair(part[6], part[7]));
        }
        fence_for_tma();
        warpgroup_barrier(warpgroup);
        if (t == 0) {
            store_box(to, 64 * box + 64 <= COLUMNS ? map : map + 128, column0 + 64 * box, row0);
            store_commit();
        }
    }
}
__device__ __forceinline__ void store_by_tma(
    float (&sums)[COLUMNS / 2], unsigned boxes, const char* map, int row0, int column0, int warpgroup) {
    store_by_tma(sums, boxes, map, row0, column0, warpgroup, [](float*, int) {});
}
#endif
