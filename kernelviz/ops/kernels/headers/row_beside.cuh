// An array of n elements (a weight) beside a row that begins anywhere: its elements with the columns of a vector of the row are two
// neighbouring 16-byte vectors, shifted. Row::load_beside reads them one by one, which takes eight times as many cycles of the L1 cache.
#pragma once
#include "rows.cuh"

// Bytes `from` ... `from` + 15 of the 32 bytes of two vectors.
__device__ __forceinline__ uint4 bytes_of_two(uint4 low, uint4 high, int from) {
    unsigned a[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
    if (from & 8) {
#pragma unroll
        for (int i = 0; i < 6; ++i) {
            a[i] = a[i + 2];
        }
    }
    if (from & 4) {
#pragma unroll
        for (int i = 0; i < 5; ++i) {
            a[i] = a[i + 1];
        }
    }
    const unsigned bits = from % 4 * 8;
    return make_uint4(__funnelshift_r(a[0], a[1], bits), __funnelshift_r(a[1], a[2], bits), __funnelshift_r(a[2], a[3], bits),
                      __funnelshift_r(a[3], a[4], bits));
}

// The elements of v (n of them, from an address of 16 bytes on) with the columns of the row's k-th vector; 0 outside the row.
template <typename T, int LANES, int VECTORS, int CLUSTER, int ROWS, bool ALIGNED>
__device__ __forceinline__ Vec16<T> beside(const Row<T, LANES, VECTORS, CLUSTER, ROWS, ALIGNED>& row, const T* __restrict__ v, int k) {
    constexpr int WIDTH = Vec16<T>::WIDTH;
    const int j = row.vector(k);
    // The last vectors of a row may reach beyond v.
    if (ALIGNED || j >= row.vectors || (long long)(j + 1) * WIDTH > row.n) {
        return row.load_beside(v, k);
    }
    const uint4* from = reinterpret_cast<const uint4*>(v) + j;
    uint4 bits = from[0];
    if (row.head) {
        bits = bytes_of_two(j ? from[-1] : make_uint4(0, 0, 0, 0), bits, 16 - row.head * (int)sizeof(T));
    }
    return *reinterpret_cast<const Vec16<T>*>(&bits);
}
