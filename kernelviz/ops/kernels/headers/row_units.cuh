// Rows whose length is a constant of the kernel, for kernels of about 1 us: units of WIDTH adjacent elements, which divide a row, and the sums of
// a row over few or many lanes. Few instructions, because each cache line of them is a fetch.
#pragma once
#include "access_bits.cuh"
#include "conversions.cuh"
#include "rows.cuh"

template <typename T, int WIDTH> using UnitBits = typename BitsOf<WIDTH * sizeof(T)>::Type;

template <typename T, int WIDTH> __device__ __forceinline__ void widen_unit(const UnitBits<T, WIDTH>& bits, float (&out)[WIDTH]) {
    const T* elements = reinterpret_cast<const T*>(&bits);
    if constexpr (sizeof(T) == 2 && WIDTH > 1) {
#pragma unroll
        for (int e = 0; e < WIDTH; e += 2) {
            const float2 both = widened(reinterpret_cast<const typename PackedPair<T>::type*>(elements)[e / 2]);
            out[e] = both.x;
            out[e + 1] = both.y;
        }
    } else {
#pragma unroll
        for (int e = 0; e < WIDTH; ++e) {
            out[e] = to_float(elements[e]);
        }
    }
}
template <typename T, int WIDTH> __device__ __forceinline__ UnitBits<T, WIDTH> narrow_unit(const float (&in)[WIDTH]) {
    UnitBits<T, WIDTH> bits;
    T* elements = reinterpret_cast<T*>(&bits);
    if constexpr (sizeof(T) == 2 && WIDTH > 1) {
#pragma unroll
        for (int e = 0; e < WIDTH; e += 2) {
            reinterpret_cast<typename PackedPair<T>::type*>(elements)[e / 2] = PackedPair<T>::rounded(in[e], in[e + 1]);
        }
    } else {
#pragma unroll
        for (int e = 0; e < WIDTH; ++e) {
            elements[e] = from_float<T>(in[e]);
        }
    }
    return bits;
}
// Zeros where there is nothing to load.
template <typename T, int WIDTH> __device__ __forceinline__ UnitBits<T, WIDTH> load_unit(const T* from, int unit, bool inside) {
    UnitBits<T, WIDTH> bits = {};
    if (inside) {
        bits = reinterpret_cast<const UnitBits<T, WIDTH>*>(from)[unit];
    }
    return bits;
}
template <typename T, int WIDTH> __device__ __forceinline__ void store_unit(T* to, int unit, const UnitBits<T, WIDTH>& bits) {
    reinterpret_cast<UnitBits<T, WIDTH>*>(to)[unit] = bits;
}

// The sum over the warps of a row. Up to eight are read by each thread, because shuffles take longer; more would be too many instructions.
template <int WARPS, typename V, typename Combine> __device__ __forceinline__ V sum_of_warps(const V (&of_warps)[WARPS], Combine combine) {
    if constexpr (WARPS > 8) {
        constexpr int LANES = WARPS > 16 ? 32 : 16;
        const int warp = threadIdx.x % LANES;
        return warp_reduce<LANES>(warp < WARPS ? of_warps[warp] : V{}, combine);
    } else {
        V chains[2] = {};
#pragma unroll
        for (int warp = 0; warp < WARPS; ++warp) {
            chains[warp % 2] = combine(chains[warp % 2], of_warps[warp]);
        }
        return combine(chains[0], chains[1]);
    }
}
