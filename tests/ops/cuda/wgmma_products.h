// Products of a warpgroup for the processor: tiles in shared memory with K contiguous and a swizzle of 128 bytes, fragments as in the PTX ISA.
#pragma once
#include "cuda_warpgroups.h"

inline unsigned long long wgmma_operand(unsigned address, unsigned, unsigned stride_bytes) {
    return address | (unsigned long long)stride_bytes << 32;
}
inline unsigned char* element(unsigned long long tile, unsigned row, unsigned byte, unsigned bytes) {
    const unsigned address = (unsigned)tile + row / 8 * (unsigned)(tile >> 32) + row % 8 * 128 + byte;
    return in_shared(block(), address ^ (address >> 3 & 0x70), bytes);
}

struct Number {  // of the format of an operand: its value, from memory, and how many are one step of K
    float (*value)(const unsigned char*);
    unsigned bytes, depth;
};
static Number operands;

inline void multiply_group(Fiber* lanes) {
    const std::size_t count = lanes[0].products.front().size();
    for (std::size_t i = 0; i < count; ++i) {
        const Product first = lanes[0].products.front()[i];
        const unsigned depth = operands.depth, bytes = operands.bytes;
        std::vector<float> a(64 * depth), b(first.columns * depth);
        for (unsigned row = 0; row < 64; ++row) {
            for (unsigned q = 0; q < depth; ++q) {
                const unsigned each = 4 / bytes;  // numbers of a register
                const unsigned lane = row / 16 * 32 + row % 8 * 4 + q / each % 4;
                const unsigned* registers = lanes[lane].products.front()[i].a;
                const unsigned char* number =
                    registers ? (const unsigned char*)(registers + row / 8 % 2 + q / each / 4 * 2) + q % each * bytes
                              : element(first.a_tile, row, q * bytes, bytes);
                a[row * depth + q] = operands.value(number);
            }
        }
        for (int column = 0; column < first.columns; ++column) {
            for (unsigned q = 0; q < depth; ++q) {
                b[column * depth + q] = operands.value(element(first.b_tile, column, q * bytes, bytes));
            }
        }
        for (unsigned thread = 0; thread < GROUP_OF_WARPS; ++thread) {
            const Product& product = lanes[thread].products.front()[i];
            if (product.b_tile != first.b_tile || product.a_tile != first.a_tile || product.add != first.add) {
                fail("threads of a warpgroup disagree about a product");
            }
            for (int j = 0; j < first.columns / 2; ++j) {
                const unsigned row = thread / 32 * 16 + thread % 32 / 4 + j / 2 % 2 * 8, column = j / 4 * 8 + thread % 4 * 2 + j % 2;
                float sum = product.add ? product.d[j] : 0.0f;
                for (unsigned q = 0; q < depth; ++q) {
                    sum += a[row * depth + q] * b[column * depth + q];
                }
                product.d[j] = sum;
            }
        }
    }
    for (unsigned thread = 0; thread < GROUP_OF_WARPS; ++thread) {
        lanes[thread].products.pop_front();
    }
}
inline void finish_products(unsigned left) {
    meet(block().meetings[50 + threadIdx.x / GROUP_OF_WARPS], GROUP_OF_WARPS, [&] {
        Fiber* lanes = first_of(GROUP_OF_WARPS);
        while (lanes[0].products.size() > left) {
            multiply_group(lanes);
        }
    });
}
inline void wgmma_fence() {}
inline void wgmma_commit() {
    Fiber& fiber = fibers[self];
    fiber.products.push_back(std::move(fiber.started));
    fiber.started.clear();
    if (at_once) {
        finish_products(0);
    }
}
template <int Groups> inline void wgmma_wait() { finish_products(Groups); }
