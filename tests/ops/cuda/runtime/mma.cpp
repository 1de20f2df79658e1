// Products of fragments by a warp: mma.sync by the fragment layouts of the PTX ISA, and wmma, whose layouts are not specified.
#include "formats.h"

// For mma.sync and wmma, numbers must have been rounded to tf32.
static void decode_rounded(Format format, const void* from, unsigned count, float* to) {
    if (format == Format::TF32) {
        for (unsigned i = 0; i < count; ++i) {
            if (static_cast<const unsigned*>(from)[i] & 0x1fff) {
                fail("a number was not rounded to tf32");
            }
        }
    }
    decode(format, from, count, to);
}
// PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type", "… for mma.m16n8k8" (tf32) and "… for mma.m16n8k32" (8 bits): EACH is the
// number of elements of a register.
template <Format FORMAT> static void multiply_fragments(Fiber* lanes) {
    constexpr int EACH = FORMAT == Format::E4M3 ? 4 : FORMAT == Format::TF32 ? 1 : 2, DEPTH = 8 * EACH;
    float a[16][DEPTH], b[DEPTH][8];
    for (unsigned i = 0; i < WARP; ++i) {
        float of_a[4 * EACH], of_b[2 * EACH];
        decode_rounded(FORMAT, lanes[i].lane.a, 4 * EACH, of_a);
        decode_rounded(FORMAT, lanes[i].lane.b, 2 * EACH, of_b);
        const unsigned group = i / 4, in_group = i % 4;
        for (int e = 0; e < 4 * EACH; ++e) {
            const int number = e / EACH;  // of the register
            a[group + number % 2 * 8][in_group * EACH + e % EACH + number / 2 * 4 * EACH] = of_a[e];
        }
        for (int e = 0; e < 2 * EACH; ++e) {
            b[in_group * EACH + e % EACH + e / EACH * 4 * EACH][group] = of_b[e];
        }
    }
    for (int row = 0; row < 16; ++row) {
        float sums[8];
        for (int column = 0; column < 8; ++column) {
            sums[column] = static_cast<float*>(lanes[row % 8 * 4 + column / 2].lane.to)[row / 8 * 2 + column % 2];
        }
        for (int depth = 0; depth < DEPTH; ++depth) {
            for (int column = 0; column < 8; ++column) {
                sums[column] += a[row][depth] * b[depth][column];
            }
        }
        for (int column = 0; column < 8; ++column) {
            static_cast<float*>(lanes[row % 8 * 4 + column / 2].lane.to)[row / 8 * 2 + column % 2] = sums[column];
        }
    }
}
static void check_fragment(const Fiber* lanes) {
    const Lane& first = lanes[0].lane;
    for (unsigned i = 1; i < WARP; ++i) {
        if (lanes[i].lane.a != first.a || lanes[i].lane.address != first.address) {
            fail("the threads of a warp load or store different fragments");
        }
    }
    if (reinterpret_cast<std::uintptr_t>(first.a) % 32 || first.address % 16) {
        fail("a fragment is not aligned");
    }
}

namespace emulated {
void mma(float* d, const unsigned* a, const unsigned* b, Format format) {
    together({0, {}, d, a, b}, [=](Fiber* lanes) {
        switch (format) {
            case Format::BF16: return multiply_fragments<Format::BF16>(lanes);
            case Format::FP16: return multiply_fragments<Format::FP16>(lanes);
            case Format::TF32: return multiply_fragments<Format::TF32>(lanes);
            case Format::E4M3: return multiply_fragments<Format::E4M3>(lanes);
        }
    });
}
void mma_of_bytes(int* d, const unsigned* a, const unsigned* b) {
    together({0, {}, d, a, b}, [=](Fiber* lanes) {
        for (unsigned lane = 0; lane < WARP; ++lane) {
            int* sums = static_cast<int*>(lanes[lane].lane.to);
            for (unsigned i = 0; i < 4; ++i) {
                for (unsigned k = 0; k < 32; ++k) {
                    const Fiber &of_row = lanes[lane / 4 * 4 + k % 16 / 4], &of_column = lanes[(lane % 4 * 2 + i % 2) * 4 + k % 16 / 4];
                    const unsigned from_a = static_cast<const unsigned*>(of_row.lane.a)[k / 16 * 2 + i / 2];
                    const unsigned from_b = static_cast<const unsigned*>(of_column.lane.b)[k / 16];
                    sums[i] += int(from_a >> k % 4 * 8 & 255) * int(static_cast<signed char>(from_b >> k % 4 * 8));
                }
            }
        }
    });
}
// The elements of a row-major fragment follow each other in the registers of thread 0, of thread 1, and so on; fp16 has each element twice.
void wmma_load(void* to, unsigned bytes_of_thread, const void* from, unsigned pitch_bytes, unsigned width, unsigned element_bytes) {
    together({pitch_bytes, {}, to, from}, [=](Fiber* lanes) {
        check_fragment(lanes);
        const unsigned each = bytes_of_thread / element_bytes, count = 16 * 32 / element_bytes;
        for (unsigned i = 0; i < WARP * each; ++i) {
            const unsigned element = i % count;
            memcpy(
                static_cast<char*>(lanes[i / each].lane.to) + i % each * element_bytes,
                static_cast<const char*>(from) + element / width * pitch_bytes + element % width * element_bytes, element_bytes);
        }
    });
}
void wmma(float* d, const unsigned* a, const unsigned* b, Format format) {
    together({0, {}, d, a, b}, [=](Fiber* lanes) {
        const unsigned bytes = bytes_of(format), depth = 32 / bytes, count = 16 * depth;
        const unsigned each = (format == Format::FP16 ? 32 : 16) / bytes;
        float of_a[256], of_b[256];
        for (unsigned i = 0; i < count / each; ++i) {
            decode_rounded(format, lanes[i].lane.a, each, of_a + i * each);
            decode_rounded(format, lanes[i].lane.b, each, of_b + i * each);
        }
        for (unsigned row = 0; row < 16; ++row) {
            float* sums[2] = {static_cast<float*>(lanes[2 * row].lane.to), static_cast<float*>(lanes[2 * row + 1].lane.to)};
            for (unsigned k = 0; k < depth; ++k) {
                for (unsigned column = 0; column < 16; ++column) {
                    sums[column / 8][column % 8] += of_a[row * depth + k] * of_b[k * 16 + column];
                }
            }
        }
    });
}
void wmma_store(float* to, const float* sums, unsigned pitch_bytes) {
    together({pitch_bytes, {}, nullptr, to, sums}, [=](Fiber* lanes) {
        check_fragment(lanes);
        for (unsigned i = 0; i < 256; ++i) {
            to[i / 16 * (pitch_bytes / 4) + i % 16] = static_cast<const float*>(lanes[i / 8].lane.b)[i % 8];
        }
    });
}
}  // namespace emulated
