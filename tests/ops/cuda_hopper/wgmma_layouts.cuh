// kernelviz/ops/kernels/headers/wgmma_layouts.cuh for the processor: operands by the descriptors of the PTX ISA ("Asynchronous Warpgroup Level
// Matrix Shared Memory Layout"), the result by its fragment layout.
#pragma once
#include "hopper.h"

inline unsigned long long wgmma_operand(unsigned address, unsigned leading_bytes, unsigned stride_bytes) {
    return (unsigned long long)((address & 0x3FFFF) >> 4) | (unsigned long long)(leading_bytes >> 4) << 16 |
           (unsigned long long)(stride_bytes >> 4) << 32 | 1ull << 62;
}
// Element (k, i) of an operand, where i counts rows of A or columns of B. K contiguous: 8 of i are 1024 bytes, the stride leads to the next 8.
// Else i is contiguous: 64 of them are 128 bytes; the leading dimension leads to the next 64, the stride to the next 8 of k.
inline float element_of(unsigned of_block, unsigned long long operand, bool k_contiguous, unsigned i, unsigned k) {
    const unsigned start = (operand & 0x3FFF) << 4, leading = (operand >> 16 & 0x3FFF) << 4, stride = (operand >> 32 & 0x3FFF) << 4;
    if (operand >> 62 != 1) {
        fail("a descriptor without the 128-byte swizzle");
    }
    const unsigned address = k_contiguous ? start + i / 8 * stride + i % 8 * 128 + k * 2
                                          : start + i / 64 * leading + i % 64 * 2 + k / 8 * stride + k % 8 * 128;
    ELEMENT element;
    memcpy(&element, in_shared(of_block, swizzled(address), 2), 2);
    return static_cast<float>(element);
}
inline void of_warpgroup(const std::function<void()>& last) {
    meet(block().meetings[OF_WGMMA + threadIdx.x / WARPGROUP_THREADS], WARPGROUP_THREADS, last);
}
template <int SUMS_OF_THREAD> void wgmma_of_layouts(float (&d)[SUMS_OF_THREAD], unsigned long long a, unsigned long long b, int add) {
    constexpr int N = 2 * SUMS_OF_THREAD;
    Lane& lane = block().lanes[threadIdx.x];
    lane.to = d;
    lane.a = a;
    lane.b = b;
    lane.add = add;
    const unsigned warpgroup = threadIdx.x / WARPGROUP_THREADS, of_block = fibers[current].block;
    of_warpgroup([=] {
        const Lane* lanes = blocks_of_cluster[of_block].lanes.data() + warpgroup * WARPGROUP_THREADS;
        std::vector<float*> sums;
        for (unsigned t = 0; t < WARPGROUP_THREADS; ++t) {
            if (lanes[t].a != a || lanes[t].b != b || lanes[t].add != add) {
                fail("the threads of a warpgroup give wgmma different operands");
            }
            sums.push_back(static_cast<float*>(lanes[t].to));
        }
        const auto multiply = [=] {
            static float of_a[64][16], of_b[16][N];
            for (int k = 0; k < 16; ++k) {
                for (int i = 0; i < 64; ++i) {
                    of_a[i][k] = element_of(of_block, a, A_K_CONTIGUOUS, i, k);
                }
                for (int i = 0; i < N; ++i) {
                    of_b[k][i] = element_of(of_block, b, B_K_CONTIGUOUS, i, k);
                }
            }
            for (int t = 0; t < (int)WARPGROUP_THREADS; ++t) {
                for (int e = 0; e < SUMS_OF_THREAD; ++e) {
                    const int row = t / 32 * 16 + t % 32 / 4 + e / 2 % 2 * 8, column = e / 4 * 8 + t % 4 * 2 + e % 2;
                    float sum = add ? sums[t][e] : 0.0f;
                    for (int k = 0; k < 16; ++k) {
                        sum += of_a[row][k] * of_b[k][column];
                    }
                    sums[t][e] = sum;
                }
            }
        };
        if (late) {
            blocks_of_cluster[of_block].begun[warpgroup].push_back(multiply);
        } else {
            multiply();
        }
    });
}
inline void wgmma_fence() {}
inline void wgmma_commit() {
    const unsigned warpgroup = threadIdx.x / WARPGROUP_THREADS;
    of_warpgroup([=] {
        block().running[warpgroup].push_back(std::move(block().begun[warpgroup]));
        block().begun[warpgroup].clear();
    });
}
template <int Groups> void wgmma_wait() {
    const unsigned warpgroup = threadIdx.x / WARPGROUP_THREADS;
    of_warpgroup([=] {
        auto& running = block().running[warpgroup];
        while (running.size() > Groups) {
            for (const auto& multiply : running.front()) {
                multiply();
            }
            running.erase(running.begin());
        }
    });
}
