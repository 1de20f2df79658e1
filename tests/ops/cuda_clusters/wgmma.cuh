// kernelviz/ops/kernels/headers/wgmma.cuh for the processor: operands of which K is contiguous, swizzled by 128 bytes.
#pragma once
#include "cuda_clusters.h"

inline unsigned long long wgmma_operand(unsigned address, unsigned leading_bytes, unsigned stride_bytes) {
    return (unsigned long long)((address & 0x3FFFF) >> 4) | (unsigned long long)(leading_bytes >> 4) << 16 |
           (unsigned long long)(stride_bytes >> 4) << 32 | 1ull << 62;
}

// Sixteen elements of each row of an operand.
inline std::vector<float> operand_rows(unsigned long long operand_of, unsigned rows) {
    const unsigned start = (operand_of & 0x3FFF) << 4, stride = (operand_of >> 32 & 0x3FFF) << 4;
    std::vector<float> values(rows * 16);
    for (unsigned row = 0; row < rows; ++row) {
        for (unsigned k = 0; k < 16; ++k) {
            ELEMENT value;
            memcpy(&value, in_shared(block(), swizzled(start + row / 8 * stride + row % 8 * 128 + 2 * k), 2), 2);
            values[row * 16 + k] = static_cast<float>(value);
        }
    }
    return values;
}
// PTX ISA, "Register Fragments and Shared Memory Matrix Layouts" of wgmma: the accumulator D.
inline void multiply(Product& product) {
    const std::vector<float> a = operand_rows(product.a, 64), b = operand_rows(product.b, product.columns);
    for (unsigned thread = 0; thread < 128; ++thread) {
        float* sums = product.sums[thread];
        for (unsigned i = 0; i < product.columns / 2; ++i) {
            const unsigned row = thread / 32 * 16 + thread % 32 / 4 + i % 4 / 2 * 8, column = i / 4 * 8 + thread % 4 * 2 + i % 2;
            float sum = product.add ? sums[i] : 0.0f;
            for (unsigned k = 0; k < 16; ++k) {
                sum += a[row * 16 + k] * b[column * 16 + k];
            }
            sums[i] = sum;
        }
    }
    product.complete = true;
}
inline void wgmma_fence() {}
template <int COUNT> void wgmma(float (&d)[COUNT], unsigned long long a, unsigned long long b, int add) {
    Warpgroup& mine = warpgroup();
    const unsigned number = fiber().issued++ - mine.first;
    if (number == mine.products.size()) {
        mine.products.push_back({a, b, add != 0, 2 * COUNT});
    }
    Product& product = mine.products[number];
    if (product.a != a || product.b != b || product.add != (add != 0)) {
        fail("threads of a warpgroup multiply different operands");
    }
    product.sums[threadIdx.x % 128] = d;
    if (++product.issued == 128 && at_once) {
        multiply(product);
    }
}
inline void wgmma_commit() { fiber().committed.push_back(fiber().issued); }
template <int Groups> void wgmma_wait() {
    Warpgroup& mine = warpgroup();
    unsigned up_to = 0;
    while (fiber().committed.size() > Groups) {
        up_to = fiber().committed.front();
        fiber().committed.pop_front();
    }
    meet(mine.meeting, 128, [&] {
        for (; mine.first < up_to; ++mine.first) {
            if (!mine.products.front().complete) {
                multiply(mine.products.front());
            }
            mine.products.pop_front();
        }
    });
}
