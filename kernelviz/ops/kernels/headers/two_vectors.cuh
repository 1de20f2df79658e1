// 16 bytes that begin anywhere in a 16-byte vector, of two adjacent vectors that were loaded whole.
#pragma once

// Bytes `from` ... `from` + 15 (0 <= from < 16) of the 32 bytes of two vectors.
__device__ __forceinline__ uint4 bytes_of_two_vectors(const uint4& low, const uint4& high, int from) {
    unsigned a[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
    for (int i = 0; i < 6; ++i) {
        a[i] = from & 8 ? a[i + 2] : a[i];
    }
#pragma unroll
    for (int i = 0; i < 5; ++i) {
        a[i] = from & 4 ? a[i + 1] : a[i];
    }
    const unsigned bits = from % 4 * 8;
    return make_uint4(__funnelshift_r(a[0], a[1], bits), __funnelshift_r(a[1], a[2], bits), __funnelshift_r(a[2], a[3], bits),
                      __funnelshift_r(a[3], a[4], bits));
}
