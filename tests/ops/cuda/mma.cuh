// kernelviz/ops/kernels/headers/mma.cuh for the processor: the same functions, by the fragment layouts of the PTX ISA. Errors are recorded by `fail`:
// bank conflicts, addresses that are not aligned or outside of a matrix, numbers that were not rounded to tf32.
#pragma once
#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "cuda_warps.h"

// Global memory that copies may read: A and B.
static const unsigned char *readable_begin[2], *readable_end[2];

// `bytes` of each thread: as many threads at a time as fill 128 bytes, which must touch each bank of 4 bytes once (or the same 4 bytes).
inline void check_banks(const WarpLane* lanes, unsigned bytes, const char* what) {
    const unsigned phase = bytes < 4 ? WARP : std::min(WARP, 128 / bytes);
    for (unsigned first = 0; first < WARP; first += phase) {
        long long bank[32];
        std::fill(bank, bank + 32, -1);
        for (unsigned lane = first; lane < first + phase; ++lane) {
            for (unsigned word = lanes[lane].address / 4; word <= (lanes[lane].address + bytes - 1) / 4; ++word) {
                if (bank[word % 32] >= 0 && bank[word % 32] != word) {
                    fail(std::string("bank conflict of ") + what);
                }
                bank[word % 32] = word;
            }
        }
    }
}

template <int BYTES> void copy_async(unsigned to, const void* from, bool valid) {
    together({0, to, nullptr, from, nullptr, valid}, [](WarpLane* lanes) {
        check_banks(lanes, BYTES, "a copy");
        for (unsigned i = 0; i < WARP; ++i) {
            const WarpLane& lane = lanes[i];
            const unsigned char* source = static_cast<const unsigned char*>(lane.a);
            if (lane.valid) {
                if (reinterpret_cast<unsigned long long>(source) % BYTES) {
                    fail("a copy reads from an address that is not aligned");
                }
                bool inside = false;
                for (int matrix = 0; matrix < 2; ++matrix) {
                    inside |= source >= readable_begin[matrix] && source + BYTES <= readable_end[matrix];
                }
                if (!inside) {
                    fail("a copy reads outside of the matrices");
                    return;
                }
            }
            const Copy copy{in_shared(lane.address, BYTES), source, BYTES, lane.valid};
            if (copies_at_once) {
                copy.run();
            } else {
                fibers[lane.thread].begun.push_back(copy);
            }
        }
    });
}
inline void commit_copies() {
    Fiber& fiber = fibers[threadIdx.x];
    fiber.groups.push_back(std::move(fiber.begun));
    fiber.begun.clear();
}
// Copies arrive as late as the instruction allows, unless `copies_at_once`.
template <int PENDING> void wait_for_copies() {
    auto& groups = fibers[threadIdx.x].groups;
    while (groups.size() > PENDING) {
        for (const Copy& copy : groups.front()) {
            copy.run();
        }
        groups.erase(groups.begin());
    }
}

template <class T> void store_shared(unsigned to, T value) {
    together({0, to, nullptr, &value, nullptr, true}, [](WarpLane* lanes) {
        check_banks(lanes, sizeof(T), "a store");
        for (unsigned i = 0; i < WARP; ++i) {
            memcpy(in_shared(lanes[i].address, sizeof(T)), lanes[i].a, sizeof(T));
        }
    });
}
template <class T> void load_shared(T& value, unsigned from) {
    together({0, from, &value, nullptr, nullptr, true}, [](WarpLane* lanes) {
        check_banks(lanes, sizeof(T), "a load");
        for (unsigned i = 0; i < WARP; ++i) {
            memcpy(lanes[i].to, in_shared(lanes[i].address, sizeof(T)), sizeof(T));
        }
    });
}

// PTX ISA, "ldmatrix": thread 8 i + r gives row r of matrix i.
inline void load_matrices(unsigned (&to)[4], unsigned row) {
    together({0, row, to, nullptr, nullptr, true}, [](WarpLane* lanes) {
        check_banks(lanes, 16, "ldmatrix");
        for (unsigned i = 0; i < WARP; ++i) {
            for (unsigned matrix = 0; matrix < 4; ++matrix) {
                const unsigned char* from = in_shared(lanes[8 * matrix + i / 4].address, 16);
                memcpy(static_cast<unsigned*>(lanes[i].to) + matrix, from + 4 * (i % 4), 4);
            }
        }
    });
}
inline void load_matrices_transposed(unsigned (&to)[4], unsigned row) {
    together({0, row, to, nullptr, nullptr, true}, [](WarpLane* lanes) {
        check_banks(lanes, 16, "ldmatrix.trans");
        for (unsigned i = 0; i < WARP; ++i) {
            for (unsigned matrix = 0; matrix < 4; ++matrix) {
                for (unsigned half = 0; half < 2; ++half) {
                    const unsigned char* from = in_shared(lanes[8 * matrix + 2 * (i % 4) + half].address, 16);
                    memcpy(static_cast<unsigned char*>(lanes[i].to) + 4 * matrix + 2 * half, from + 2 * (i / 4), 2);
                }
            }
        }
    });
}

inline float element(const __nv_bfloat16& value) { return static_cast<float>(value); }
inline float element(const __half& value) { return static_cast<float>(value); }
inline float element(const float& value) {
    unsigned bits;
    memcpy(&bits, &value, 4);
    if (bits & 0x1fff) {
        fail("a number was not rounded to tf32");
    }
    return value;
}

// PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type" and "… for mma.m16n8k8" (tf32): element (row, column) of A is in thread
// 4 (row % 8) + … of the warp. DEPTH is 16 for 2-byte elements and 8 for tf32.
template <class ELEMENT_TYPE> void multiply_add_fragments(WarpLane* lanes) {
    constexpr int EACH = 4 / sizeof(ELEMENT_TYPE), DEPTH_OF_ONE = 8 * EACH;
    float a[16][DEPTH_OF_ONE], b[DEPTH_OF_ONE][8];
    for (unsigned i = 0; i < WARP; ++i) {
        const ELEMENT_TYPE* of_a = static_cast<const ELEMENT_TYPE*>(lanes[i].a);
        const ELEMENT_TYPE* of_b = static_cast<const ELEMENT_TYPE*>(lanes[i].b);
        const unsigned group = i / 4, in_group = i % 4;
        for (int e = 0; e < 4 * EACH; ++e) {
            const int number = e / EACH;  // of the register
            a[group + number % 2 * 8][in_group * EACH + e % EACH + number / 2 * 4 * EACH] = element(of_a[e]);
        }
        for (int e = 0; e < 2 * EACH; ++e) {
            b[in_group * EACH + e % EACH + e / EACH * 4 * EACH][group] = element(of_b[e]);
        }
    }
    for (unsigned i = 0; i < WARP; ++i) {
        float* d = static_cast<float*>(lanes[i].to);
        for (int e = 0; e < 4; ++e) {
            const int row = i / 4 + e / 2 * 8, column = i % 4 * 2 + e % 2;
            for (int depth = 0; depth < DEPTH_OF_ONE; ++depth) {
                d[e] += a[row][depth] * b[depth][column];
            }
        }
    }
}
template <class ELEMENT_TYPE> struct TensorCore {
    static void multiply_add(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
        together({0, 0, d, a, b, true}, multiply_add_fragments<ELEMENT_TYPE>);
    }
    static unsigned pair(float low, float high) {
        const ELEMENT_TYPE both[2] = {ELEMENT_TYPE(low), ELEMENT_TYPE(high)};
        unsigned bits;
        memcpy(&bits, both, 4);
        return bits;
    }
};
// cvt.rna.tf32.f32 of a finite number: to nearest, ties away from zero.
inline unsigned rounded_to_tf32(unsigned bits) { return (bits + 0x1000) & ~0x1fffu; }
