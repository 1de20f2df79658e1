// Sums of a few lanes, and of a few adjacent elements by one thread, for kernels of about 1 us: few instructions, because each cache line of them is a fetch, and
// pairs of sums where elements come in vectors, because a chain of additions takes 4 cycles each.
#pragma once
#include "conversions.cuh"

// The sum over so many lanes, a power of two, in each of them. By all lanes of a warp.
template <int COUNT> __device__ __forceinline__ float lanes_sum(float v) {
#pragma unroll
    for (int apart = COUNT / 2; apart > 0; apart /= 2) {
        v += __shfl_xor_sync(0xffffffffu, v, apart);
    }
    return v;
}

template <typename T, int COUNT> struct alignas(sizeof(T) * COUNT) Adjacent {
    T of[COUNT];
};

// Zeros where there is nothing to load. The elements of 16 bytes are not selected one by one.
template <typename T, int COUNT> __device__ __forceinline__ Adjacent<T, COUNT> load_if(bool inside, const Adjacent<T, COUNT>* from) {
    if constexpr (sizeof(T) * COUNT == 16) {
        uint4 bits = make_uint4(0, 0, 0, 0);
        if (inside) {
            bits = *reinterpret_cast<const uint4*>(from);
        }
        return reinterpret_cast<const Adjacent<T, COUNT>&>(bits);
    } else {
        return inside ? *from : Adjacent<T, COUNT>{};
    }
}

// One load. Read member by member, a vector of floats is as many loads.
template <typename T, int COUNT> __device__ __forceinline__ Adjacent<T, COUNT> load_whole(const Adjacent<T, COUNT>* __restrict__ from) {
    if constexpr (sizeof(T) * COUNT == 16) {
        const uint4 bits = __ldg(reinterpret_cast<const uint4*>(from));
        return reinterpret_cast<const Adjacent<T, COUNT>&>(bits);
    } else if constexpr (sizeof(T) * COUNT == 8) {
        const uint2 bits = __ldg(reinterpret_cast<const uint2*>(from));
        return reinterpret_cast<const Adjacent<T, COUNT>&>(bits);
    } else {
        return *from;
    }
}

template <typename T, int COUNT> __device__ __forceinline__ float sum_of_pairs(const Adjacent<T, COUNT>& part) {
    float sums[COUNT];
    if constexpr (sizeof(T) == 2 && COUNT > 1) {
#pragma unroll
        for (int e = 0; e < COUNT; e += 2) {
            const float2 both = widened(reinterpret_cast<const typename PackedPair<T>::type*>(part.of)[e / 2]);
            sums[e] = both.x;
            sums[e + 1] = both.y;
        }
    } else {
#pragma unroll
        for (int e = 0; e < COUNT; ++e) {
            sums[e] = to_float(part.of[e]);
        }
    }
#pragma unroll
    for (int apart = 1; apart < COUNT; apart *= 2) {
#pragma unroll
        for (int e = 0; e < COUNT; e += 2 * apart) {
            sums[e] += sums[e + apart];
        }
    }
    return sums[0];
}

// The sum of COUNT elements from x on, in fp32, loaded AT_ONCE at a time and at the end fewer. AT_ONCE is a power of two, at most 16 bytes, and x starts
// on a multiple of so many elements.
template <int AT_ONCE, int COUNT, typename T> __device__ __forceinline__ float adjacent_sum(const T* __restrict__ x) {
    constexpr int PART = AT_ONCE <= COUNT ? AT_ONCE : COUNT >= 4 ? 4 : COUNT >= 2 ? 2 : 1;
    static_assert(PART <= AT_ONCE && AT_ONCE <= 8);
    const float sum = sum_of_pairs(load_whole(reinterpret_cast<const Adjacent<T, PART>*>(x)));
    if constexpr (COUNT > PART) {
        return sum + adjacent_sum<PART, COUNT - PART>(x + PART);
    } else {
        return sum;
    }
}
