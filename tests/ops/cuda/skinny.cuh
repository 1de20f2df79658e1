// kernelviz/ops/kernels/headers/skinny.cuh for the processor.
#pragma once
#include "mma.cuh"

inline float __uint_as_float(unsigned bits) {
    float value;
    memcpy(&value, &bits, 4);
    return value;
}
inline unsigned __float_as_uint(float value) {
    unsigned bits;
    memcpy(&bits, &value, 4);
    return bits;
}
template <class T> void load_once(T& value, const char* from) {
    if (reinterpret_cast<unsigned long long>(from) % sizeof(T)) {
        fail("a load from an address that is not aligned");
    }
    const unsigned char* source = reinterpret_cast<const unsigned char*>(from);
    if (source < readable_begin[1] || source + sizeof(T) > readable_end[1]) {
        fail("a load outside of B");
        return;
    }
    memcpy(&value, from, sizeof(T));
}
template <class ELEMENT_TYPE> struct Halves {
    static void split(unsigned bits, float& low, float& high) {
        ELEMENT_TYPE both[2];
        memcpy(both, &bits, 4);
        low = static_cast<float>(both[0]);
        high = static_cast<float>(both[1]);
    }
};
inline float sum_of_two_lanes(float value, int mask) {
    struct Exchange {
        float number;
        int mask;
    } mine{value, mask};
    float other;
    together({0, 0, &other, &mine, nullptr, true}, [](WarpLane* lanes) {
        for (unsigned i = 0; i < WARP; ++i) {
            const unsigned from = i ^ static_cast<const Exchange*>(lanes[i].a)->mask;
            *static_cast<float*>(lanes[i].to) = static_cast<const Exchange*>(lanes[from].a)->number;
        }
    });
    return value + other;
}
// Blocks run one after the other.
inline bool is_last_to_arrive(unsigned* arrived, unsigned parts) {
    static bool is_last;
    __syncthreads();
    if (threadIdx.x == 0) {
        is_last = ++*arrived == parts;
        if (is_last) {
            *arrived = 0;
        }
    }
    __syncthreads();
    return is_last;
}
inline float sum_of_parts(const float* from, long long distance, int parts) {
    float sum = 0.0f;
    for (int part = 0; part < parts; ++part) {
        sum += from[part * distance];
    }
    return sum;
}
inline float4 sum_of_parts(const float4* from, long long distance, int parts) {
    float4 sum = {0.0f, 0.0f, 0.0f, 0.0f};
    for (int part = 0; part < parts; ++part) {
        const float4& one = from[part * distance];
        sum = {sum.x + one.x, sum.y + one.y, sum.z + one.z, sum.w + one.w};
    }
    return sum;
}
