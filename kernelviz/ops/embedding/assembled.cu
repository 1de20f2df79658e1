// CUDA C++ kernel that copies rows that ids name and that are not whole 16-byte vectors, compiled for the length of a row. UNIT is the widest of
// unsigned short, unsigned and uint2 that every row starts on and is a whole number of; nothing is converted, so bits stay as they are.

// ROW: units of a row. ONE_ROW: x has one row, which each id names. INDEX: unsigned if it counts all units of the output, else unsigned long long.
#ifndef ROW
#define ROW 1
#define ONE_ROW 0
#define INDEX unsigned
#endif
constexpr int THREADS = 128, WIDTH = 16 / sizeof(UNIT);
// Rows that a vector of the output may have units of: the most, if it begins with the last unit of one.
constexpr int ROWS = (ROW + WIDTH - 2) / ROW + 1;

struct alignas(16) Vector {
    UNIT unit[WIDTH];
};

// A thread assembles one 16-byte vector of the output, wherever in a row it begins: as many bytes are in flight as with rows of whole vectors, a row
// is divided by a constant once for all of its units, and one store writes them. A thread that copies single units has 2 to 8 bytes in flight.
// `total`: units of the output; `last`: its last row, which stands for those behind it.
extern "C" __global__ void __launch_bounds__(THREADS) gather_assembled(
    const UNIT* __restrict__ x, const long long* __restrict__ ids, UNIT* __restrict__ out, INDEX total, INDEX last) {
    const INDEX first = ((INDEX)blockIdx.x * THREADS + threadIdx.x) * WIDTH;
    if (first >= total) {
        return;
    }
    const INDEX row = first / ROW;
    const int position = (int)(first - row * ROW);
    // Unit k of the vector is unit k behind the first, third, ... of these addresses, which are those of the rows moved back.
    const UNIT* from[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        long long id = 0;
        if constexpr (!ONE_ROW) {
            id = __ldg(ids + (row + r < last ? row + r : last));
        }
        from[r] = x + (id * ROW + position - r * ROW);
    }
    Vector vector;
#pragma unroll
    for (int k = 0; k < WIDTH; ++k) {
        // Of a row that begins up to ROW - 1 units before the vector, so of one of two rows.
        const int r = k / ROW;
        const UNIT* of_row = r + 1 < ROWS && position + k >= (r + 1) * ROW ? from[r + 1 < ROWS ? r + 1 : r] : from[r];
        vector.unit[k] = __ldg(of_row + k);
    }
    if (first + WIDTH <= total) {
        *reinterpret_cast<Vector*>(out + first) = vector;
        return;
    }
#pragma unroll
    for (int k = 0; k < WIDTH; ++k) {
        if (first + k < total) {
            out[first + k] = vector.unit[k];
        }
    }
}
