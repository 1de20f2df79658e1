// Copies by TMA of what a filter sees of images in NHWC, and of filters (sm_90 and later).
// Addresses of shared memory are 32-bit numbers, as __cvta_generic_to_shared gives them. tests/ops/cuda/im2col.cuh does the same with the processor.
#pragma once

// 64 channels of as many pixels as the tensor map says, from the position of a filter whose upper left pixel is (row, column) of an image: of each
// position, in the order of the result, the pixel under the filter's tap (tap_row, tap_column). What is outside of the image is 0.
__device__ __forceinline__ void load_windows(
    unsigned to, const char* map, int channel, int column, int row, int image, unsigned short tap_column, unsigned short tap_row, unsigned barrier) {
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5}], [%6], {%7, %8};" ::"r"(to),
        "l"(map), "r"(channel), "r"(column), "r"(row), "r"(image), "r"(barrier), "h"(tap_column), "h"(tap_row)
        : "memory");
}
// 64 channels of one tap, of as many filters as the tensor map says.
__device__ __forceinline__ void load_taps(unsigned to, const char* map, int channel, int tap, int filter, unsigned barrier) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];" ::"r"(to), "l"(map),
        "r"(channel), "r"(tap), "r"(filter), "r"(barrier)
        : "memory");
}
