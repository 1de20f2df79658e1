// nvcuda::wmma for the processor. Which thread has which element of a fragment is not specified, so each thread has a whole one.
#pragma once
#include "cuda_warps.h"

namespace nvcuda {
namespace wmma {
struct matrix_a;
struct matrix_b;
struct accumulator;
struct row_major;
namespace precision {
struct tf32;
}
constexpr int mem_row_major = 0;

template <class T> struct Stored { using type = T; };
template <> struct Stored<precision::tf32> { using type = float; };
template <class USE, int M, int N, int K> struct Extent;
template <int M, int N, int K> struct Extent<matrix_a, M, N, K> { static constexpr int rows = M, columns = K; };
template <int M, int N, int K> struct Extent<matrix_b, M, N, K> { static constexpr int rows = K, columns = N; };
template <int M, int N, int K> struct Extent<accumulator, M, N, K> { static constexpr int rows = M, columns = N; };

template <class USE, int M, int N, int K, class T, class LAYOUT = void> struct fragment {
    using Of = Extent<USE, M, N, K>;
    using Element = typename Stored<T>::type;
    static constexpr int num_elements = Of::rows * Of::columns;
    Element x[num_elements];
};

template <class FRAGMENT> void fill_fragment(FRAGMENT& to, float value) { std::fill(to.x, to.x + to.num_elements, value); }
inline void check_fragment(const void* address, unsigned pitch_bytes) {
    if (reinterpret_cast<unsigned long long>(address) % 32 || pitch_bytes % 16) {
        fail("a fragment is not aligned");
    }
}
template <class FRAGMENT, class T> void load_matrix_sync(FRAGMENT& to, const T* from, unsigned pitch) {
    check_fragment(from, pitch * sizeof(T));
    __syncwarp();
    for (int i = 0; i < to.num_elements; ++i) {
        to.x[i] = from[i / FRAGMENT::Of::columns * pitch + i % FRAGMENT::Of::columns];
    }
}
template <class FRAGMENT> void store_matrix_sync(float* to, const FRAGMENT& from, unsigned pitch, int) {
    check_fragment(to, pitch * sizeof(float));
    __syncwarp();
    for (int i = 0; i < from.num_elements; ++i) {
        to[i / FRAGMENT::Of::columns * pitch + i % FRAGMENT::Of::columns] = from.x[i];
    }
}
// For c = d. All threads have the same fragments, so that one computes the sums.
template <class D, class A, class B> void mma_sync(D& d, const A& a, const B& b, const D&) {
    together({0, 0, &d, &a, &b, true}, [](WarpLane* lanes) {
        D& sums = *static_cast<D*>(lanes[0].to);
        const A& of_a = *static_cast<const A*>(lanes[0].a);
        const B& of_b = *static_cast<const B*>(lanes[0].b);
        for (int i = 0; i < D::Of::rows; ++i) {
            for (int j = 0; j < D::Of::columns; ++j) {
                for (int k = 0; k < A::Of::columns; ++k) {
                    sums.x[i * D::Of::columns + j] +=
                        static_cast<float>(of_a.x[i * A::Of::columns + k]) * static_cast<float>(of_b.x[k * B::Of::columns + j]);
                }
            }
        }
        for (unsigned i = 1; i < WARP; ++i) {
            *static_cast<D*>(lanes[i].to) = sums;
        }
    });
}
inline float __float_to_tf32(float value) {
    unsigned bits;
    memcpy(&bits, &value, 4);
    bits = (bits + 0x1000) & ~0x1fffu;
    memcpy(&value, &bits, 4);
    return value;
}
}  // namespace wmma
}  // namespace nvcuda
