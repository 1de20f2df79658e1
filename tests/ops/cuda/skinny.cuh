// kernelviz/ops/kernels/headers/skinny.cuh for the processor.
#pragma once
#include "mma.cuh"

template <class T> void load_once(T& value, const char* from) { emulated::load_once(&value, from, sizeof(T)); }
template <class ELEMENT_TYPE> struct Halves {
    static void split(unsigned bits, float& low, float& high) {
        ELEMENT_TYPE both[2];
        memcpy(both, &bits, 4);
        low = static_cast<float>(both[0]);
        high = static_cast<float>(both[1]);
    }
};
inline float sum_of_two_lanes(float value, int mask) { return value + emulated::of_lane_with(value, mask); }
inline bool is_last_to_arrive(unsigned* arrived, unsigned parts) { return emulated::is_last_to_arrive(arrived, parts); }
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
