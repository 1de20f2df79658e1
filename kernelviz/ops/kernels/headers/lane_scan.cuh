// A step of an inclusive scan of a warp in two instructions: the shuffle itself tells whether there is a lane so far below.
#pragma once

// Adds the sum of the lane that is `apart` lanes below, if there is one. By all lanes of a warp.
__device__ __forceinline__ void add_lane_below(float& upto, int apart) {
    asm volatile(
        "{\n .reg .pred inside;\n .reg .f32 other;\n shfl.sync.up.b32 other|inside, %0, %1, 0, 0xffffffff;\n @inside add.f32 %0, %0, other;\n}"
        : "+f"(upto)
        : "r"(apart));
}
