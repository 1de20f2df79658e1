// Eight numbers q of 4 bits in a register become four pairs of 16-bit floating-point numbers that are q and a constant: one logic instruction a pair.
// packed.cuh, or the header of the tests that stands for it, must be included before.
#pragma once

template <typename ELEMENT_TYPE> struct FourBit;
// 0x4300 is 128 in bfloat16, whose last bits then count in ones: 0x4300 | q is 128 + q.
template <> struct FourBit<__nv_bfloat16> {
    static constexpr unsigned MAGIC = 0x43004300;
    static constexpr float EVEN = 128.0f, ODD = 128.0f, SHARE_OF_ODD = 1.0f;
    // The numbers 128 + q of weights i and i + 4 of the eight in `bits`, for i = 0 to 3.
    static __device__ __forceinline__ void pairs(unsigned (&to)[4], unsigned bits) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            to[i] = and_or(bits >> 4 * i, 0x000f000f, MAGIC);
        }
    }
    // q - zero, exact.
    static __device__ __forceinline__ void subtract(unsigned (&pairs)[4], unsigned zero) {
#pragma unroll
        for (unsigned i = 0; i < 4; ++i) {
            pairs[i] = subtract_pairs<__nv_bfloat16>(pairs[i], MAGIC | zero * 0x10001u);
        }
    }
};
// 0x6400 is 1024 in fp16, whose last bits then count in ones: 0x6400 | q is 1024 + q, and a sixteenth of 0x6400 | 16 q is 64 + q.
template <> struct FourBit<__half> {
    static constexpr unsigned MAGIC = 0x64006400;
    static constexpr float EVEN = 1024.0f, ODD = 64.0f, SHARE_OF_ODD = 0.0625f;
    // The numbers 1024 + q for even i, 16 (64 + q) for odd i.
    static __device__ __forceinline__ void pairs(unsigned (&to)[4], unsigned bits) {
#pragma unroll
        for (int i = 0; i < 4; i += 2) {
            to[i] = and_or(bits >> 4 * i, 0x000f000f, MAGIC);
            to[i + 1] = and_or(bits >> 4 * i, 0x00f000f0, MAGIC);
        }
    }
    static __device__ __forceinline__ void subtract(unsigned (&pairs)[4], unsigned zero) {
#pragma unroll
        for (int i = 0; i < 4; i += 2) {
            pairs[i] = subtract_pairs<__half>(pairs[i], MAGIC | zero * 0x10001u);
            pairs[i + 1] = multiply_add_pairs<__half>(pairs[i + 1], 0x2c002c00u, 0xd400d400u | zero * 0x100010u);
        }
    }
};
