// kernelviz/ops/kernels/headers/parts_of_k.cuh for the processor: the same functions.
#pragma once

template <int COUNT> void store_part(float4* to, const float (&sums)[COUNT]) {
    for (int i = 0; i < COUNT; i += 4) {
        to[i / 4 * 128] = {sums[i], sums[i + 1], sums[i + 2], sums[i + 3]};
    }
}
template <int COUNT> void add_part(float (&sums)[COUNT], const float4* from) {
    for (int i = 0; i < COUNT; i += 4) {
        const float4 four = from[i / 4 * 128];
        sums[i] += four.x, sums[i + 1] += four.y, sums[i + 2] += four.z, sums[i + 3] += four.w;
    }
}
inline bool is_last_warpgroup(unsigned* arrived, unsigned parts, int warpgroup, unsigned shared) {
    emulated::barrier_of_threads(warpgroup + 1, 128);
    if (threadIdx.x % 128 == 0) {
        const unsigned before = (*arrived)++;
        if (before == parts - 1) {
            *arrived = 0;
        }
        emulated::store_alone(shared, &before, 4);
    }
    emulated::barrier_of_threads(warpgroup + 1, 128);
    unsigned before;
    emulated::load_alone(&before, shared, 4);
    return before == parts - 1;
}
