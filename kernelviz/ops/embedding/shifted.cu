// CUDA C++ kernel that copies rows of 16-bit units that ids name and that are not whole 16-byte vectors, compiled for the length of a row. Nothing is
// converted, so bits stay as they are.
#include "two_vectors.cuh"

// ROW: units of a row, at least 7, so that no vector has units of three rows. ONE_ROW: x has one row, which each id names. TAIL: units of x behind
// its last whole vector. INDEX: unsigned if it counts all units of the output, else unsigned long long.
#ifndef ROW
#define ROW 16
#define ONE_ROW 0
#define TAIL 0
#define INDEX unsigned
#endif
using Unit = unsigned short;
constexpr int THREADS = 128, WIDTH = 8;
static_assert(ROW >= WIDTH - 1);
// Of a shorter row, the first units may be in the last vector of x, which may be partial.
constexpr bool SHORT = ROW < 2 * WIDTH - 2;

struct alignas(16) Vector {
    Unit unit[WIDTH];
};

__device__ __forceinline__ int bytes_before(const Unit* address) { return (int)(reinterpret_cast<unsigned long long>(address) % 16); }

// The last units of x, which are fewer than a vector. Nothing behind x is read.
__device__ __forceinline__ uint4 units_at(const Unit* edge) {
    uint4 units = make_uint4(0, 0, 0, 0);
    if constexpr ((TAIL & 4) != 0) {
        const uint2 four = __ldg(reinterpret_cast<const uint2*>(edge));
        units.x = four.x;
        units.y = four.y;
    }
    if constexpr ((TAIL & 2) != 0) {
        (TAIL & 4 ? units.z : units.x) = __ldg(reinterpret_cast<const unsigned*>(edge + (TAIL & 4)));
    }
    if constexpr ((TAIL & 1) != 0) {
        (TAIL & 4 ? (TAIL & 2 ? units.w : units.z) : (TAIL & 2 ? units.y : units.x)) = __ldg(edge + (TAIL & 6));
    }
    return units;
}

// A thread assembles one 16-byte vector of the output of the two vectors of x in which its units are, and, where a row ends within it, of the two with
// the first units of the next row. Loads of single units would be eight, of which each takes as long for a warp as one of 16 bytes.
// x starts on a multiple of 16 bytes. `total`: units of the output; `last`: its last row, which stands for the one behind it; `whole`: units of x
// in whole vectors.
extern "C" __global__ void __launch_bounds__(THREADS) gather_shifted(
    const Unit* __restrict__ x, const long long* __restrict__ ids, Unit* __restrict__ out, INDEX total, INDEX last, long long whole) {
    const INDEX first = ((INDEX)blockIdx.x * THREADS + threadIdx.x) * WIDTH;
    if (first >= total) {
        return;
    }
    const INDEX row = first / ROW;
    const int position = (int)(first - row * ROW), split = ROW - position;
    long long id = 0, next_id = 0;
    if constexpr (!ONE_ROW) {
        id = __ldg(ids + row);
        next_id = __ldg(ids + (row < last ? row + 1 : last));
    }
    // Units k < split of the vector are at from + k, the others at after + k.
    const Unit *from = x + (id * ROW + position), *after = x + (next_id * ROW - split);
    const int shift = bytes_before(from), shift_after = bytes_before(after);
    const int end = shift + 2 * (split < WIDTH ? split : WIDTH);
    const uint4* vectors = reinterpret_cast<const uint4*>(from - shift / 2);
    const uint4* vectors_after = reinterpret_cast<const uint4*>(after - shift_after / 2);
    const bool two = end > 16, crosses = split < WIDTH;
    const uint4* edge = reinterpret_cast<const uint4*>(x + whole);
    const bool at_edge = TAIL && vectors + two == edge;
    const bool after_at_edge = SHORT && TAIL && crosses && vectors_after + (shift_after > 0) == edge;
    uint4 low = make_uint4(0, 0, 0, 0), high = low, low_after = low, high_after = low;
    if (two || !at_edge) {
        low = __ldg(vectors);
    }
    if (two && !at_edge) {
        high = __ldg(vectors + 1);
    }
    if (crosses && shift_after + 2 * split < 16 && (shift_after > 0 || !after_at_edge)) {
        low_after = __ldg(vectors_after);
    }
    if (crosses && shift_after > 0 && !after_at_edge) {
        high_after = __ldg(vectors_after + 1);
    }
    if (at_edge) {
        (two ? high : low) = units_at(x + whole);
    }
    if (after_at_edge) {
        (shift_after > 0 ? high_after : low_after) = units_at(x + whole);
    }
    const uint4 ahead = bytes_of_two_vectors(low, high, shift);
    const uint4 behind = bytes_of_two_vectors(low_after, high_after, shift_after);
    // Of each two units, the bits that are of the first row.
    const auto both = [split](unsigned of_first, unsigned of_next, int pair) {
        const unsigned mask = split >= 2 * pair + 2 ? 0xffffffffu : split == 2 * pair + 1 ? 0xffffu : 0u;
        return (of_first & mask) | (of_next & ~mask);
    };
    const uint4 bits = make_uint4(both(ahead.x, behind.x, 0), both(ahead.y, behind.y, 1), both(ahead.z, behind.z, 2), both(ahead.w, behind.w, 3));
    if (first + WIDTH <= total) {
        *reinterpret_cast<uint4*>(out + first) = bits;
        return;
    }
    const Vector& vector = reinterpret_cast<const Vector&>(bits);
#pragma unroll
    for (int k = 0; k < WIDTH; ++k) {
        if (first + k < total) {
            out[first + k] = vector.unit[k];
        }
    }
}
