// kernelviz/ops/kernels/headers/wmma.cuh for the processor: the same functions. Which thread has which element of a fragment is not specified by the
// PTX ISA; here the elements of a row-major fragment follow each other in the registers of thread 0, of thread 1, and so on. Errors are recorded by
// `fail`: threads of a warp with different addresses, addresses that are not aligned, numbers that were not rounded to tf32.
#pragma once
#include <type_traits>

#include "mma.cuh"

inline void check_fragment(const WarpLane* lanes, const void* address, unsigned pitch_bytes) {
    for (unsigned i = 1; i < WARP; ++i) {
        if (lanes[i].a != lanes[0].a || lanes[i].address != lanes[0].address) {
            fail("the threads of a warp load or store different fragments");
        }
    }
    if (reinterpret_cast<unsigned long long>(address) % 32 || pitch_bytes % 16) {
        fail("a fragment is not aligned");
    }
}

template <class ELEMENT_TYPE> struct Wmma {
    static constexpr int SIZE = sizeof(ELEMENT_TYPE), DEPTH = 32 / SIZE, COUNT = 16 * DEPTH;
    static constexpr int REGISTERS = std::is_same_v<ELEMENT_TYPE, __half> ? 8 : 4, EACH = REGISTERS * 4 / SIZE;
    using Fragment = unsigned[REGISTERS];

    template <int WIDTH> static void load(Fragment& to, const ELEMENT_TYPE* from, int pitch) {
        together({0, static_cast<unsigned>(pitch), to, from, nullptr, true}, [](WarpLane* lanes) {
            check_fragment(lanes, lanes[0].a, lanes[0].address * SIZE);
            for (unsigned i = 0; i < WARP * EACH; ++i) {  // fp16: each element is in two threads
                const int element = i % COUNT;
                const ELEMENT_TYPE* row = static_cast<const ELEMENT_TYPE*>(lanes[0].a) + element / WIDTH * lanes[0].address;
                memcpy(static_cast<char*>(lanes[i / EACH].to) + i % EACH * SIZE, row + element % WIDTH, SIZE);
            }
        });
    }
    static void load_a(Fragment& to, const ELEMENT_TYPE* from, int pitch) { load<DEPTH>(to, from, pitch); }
    static void load_b(Fragment& to, const ELEMENT_TYPE* from, int pitch) { load<16>(to, from, pitch); }
    static void multiply_add(float (&d)[8], const Fragment& a, const Fragment& b) {
        together({0, 0, d, a, b, true}, [](WarpLane* lanes) {
            float of_a[COUNT], of_b[COUNT];
            for (unsigned i = 0; i < WARP * EACH; ++i) {
                of_a[i % COUNT] = element(static_cast<const ELEMENT_TYPE*>(lanes[i / EACH].a)[i % EACH]);
                of_b[i % COUNT] = element(static_cast<const ELEMENT_TYPE*>(lanes[i / EACH].b)[i % EACH]);
            }
            for (int i = 0; i < 256; ++i) {
                float& sum = static_cast<float*>(lanes[i / 8].to)[i % 8];
                for (int k = 0; k < DEPTH; ++k) {
                    sum += of_a[i / 16 * DEPTH + k] * of_b[k * 16 + i % 16];
                }
            }
        });
    }
};
template <int STEP> void store_sums(float* to, const float (&sums)[8], int pitch) {
    together({0, static_cast<unsigned>(pitch), nullptr, to, sums, true}, [](WarpLane* lanes) {
        check_fragment(lanes, lanes[0].a, lanes[0].address * sizeof(float));
        float* to = static_cast<float*>(const_cast<void*>(lanes[0].a));
        for (int i = 0; i < 256; ++i) {
            to[i / 16 * lanes[0].address + i % 16] = static_cast<const float*>(lanes[i / 8].b)[i % 8];
        }
    });
}
