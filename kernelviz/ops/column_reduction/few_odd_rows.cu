// CUDA C++ kernel of `column_sum` for few rows that begin anywhere in a 16-byte vector. ELEMENT is float, __half or __nv_bfloat16; sums are in
// fp32. Compiled for where rows begin, so that each element of a vector is added to one of the thread's sums without being moved.
#include "conversions.cuh"
#include "loads_first.cuh"

// SHIFT: elements by which x starts behind a multiple of 16 bytes. ODD: n modulo the elements of a vector. ROWS: rows of a thread in flight, all
// m of them, or MANY times 8, whose rows begin like the 8 before. LAST: (m - 1) modulo 8. GROUPS of warps share the rows, 8 at a time.
#ifndef ROWS
#define ROWS 1
#define GROUPS 1
#define MANY 0
#define SHIFT 0
#define ODD 1
#define LAST 0
#endif
using Vector = Vec16<ELEMENT>;
constexpr int THREADS = 256, WIDTH = Vector::WIDTH, OF_WARP = 31, OF_GROUP = THREADS / GROUPS;
// Elements of row r that lie in the vector of its first element, but before it, and of the vector in which the matrix ends.
__device__ constexpr int before(int r) { return (SHIFT + r * ODD) % WIDTH; }
constexpr int TAIL = before(LAST + 1);

// One pass: the rows of a column are all of one thread, or of one in each group. Thread g has the columns from g * WIDTH on, and of each row the
// vector of which a part belongs to these columns and the rest, `left`, to those of thread g - 1, its neighbour in the warp. So neighbours exchange
// sums once, whatever the number of rows, and each vector is loaded once, except that the last lane of a warp only has sums for its neighbour: the
// next warp begins with its columns. n >= 2 * WIDTH.
extern "C" __global__ void __launch_bounds__(THREADS, 4) column_few_odd_rows(
    const ELEMENT* __restrict__ x, ELEMENT* __restrict__ out, long long m, int n) {
    const int lane = threadIdx.x % 32, group = threadIdx.x / OF_GROUP, place = threadIdx.x % OF_GROUP;
    const int g = (blockIdx.x * (OF_GROUP / 32) + place / 32) * OF_WARP + lane;
    // Of the last row, thread g_end has the vector in which the matrix ends. All vectors of other rows are within it, except the first one.
    const int g_end = (before(LAST) + n) / WIDTH;
    const bool in_row = g <= (n + WIDTH - 1) / WIDTH;
    const bool is_first = SHIFT > 0 && g == 0, is_last = TAIL > 0 && g == g_end;
    ELEMENT edge[WIDTH];
    if (is_first || is_last) {
        const ELEMENT* from = is_first ? x - SHIFT : x + (m * n - TAIL);
#pragma unroll
        for (int e = 0; e < WIDTH; ++e) {
            if (is_first ? e >= SHIFT : e < TAIL) {
                edge[e] = from[e];
            }
        }
    }
    float own[WIDTH] = {}, left[WIDTH] = {};
    const long long step = 8 / WIDTH * (long long)n;
    const uint4* vectors = reinterpret_cast<const uint4*>(x - SHIFT) + g + group * step;
    for (long long row = group * 8; row < (MANY ? m : 1); row += GROUPS * 8, vectors += GROUPS * step) {
        uint4 bits[ROWS];
        // Loads under predicates, not a loop over what remains, so that all of them are in flight at once.
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            const bool is_last_row = MANY ? row + r == m - 1 : r == ROWS - 1;
            const bool whole = (is_last_row ? g < g_end : in_row) && (!MANY || row + r < m) && !(r == 0 && row == 0 && is_first);
            bits[r] = whole ? __ldg(vectors + (unsigned)(r * (n / WIDTH) + (SHIFT + r * ODD) / WIDTH)) : uint4{};
        }
        loads_first(bits);
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            float v[WIDTH];
            widen(reinterpret_cast<const Vector&>(bits[r]), v);
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) {
                (e >= before(r) ? own[e - before(r)] : left[WIDTH - before(r) + e]) += v[e];
            }
        }
    }
    if (group > 0) {  // the first one adds both edges
    } else if (is_first) {
#pragma unroll
        for (int e = SHIFT; e < WIDTH; ++e) {
            own[e - SHIFT] += to_float(edge[e]);
        }
    } else if (is_last) {
#pragma unroll
        for (int e = 0; e < TAIL; ++e) {
            (e >= before(LAST) ? own[e - before(LAST)] : left[WIDTH - before(LAST) + e]) += to_float(edge[e]);
        }
    }
#pragma unroll
    for (int c = 1; c < WIDTH; ++c) {
        own[c] += __shfl_down_sync(0xffffffffu, left[c], 1);
    }
#if GROUPS > 1
    __shared__ float sums[GROUPS - 1][WIDTH][OF_GROUP];
    if (group > 0) {
#pragma unroll
        for (int c = 0; c < WIDTH; ++c) {
            sums[group - 1][c][place] = own[c];
        }
    }
    __syncthreads();
    if (group > 0) {
        return;
    }
#pragma unroll
    for (int c = 0; c < WIDTH; ++c) {
#pragma unroll
        for (int other = 0; other < GROUPS - 1; ++other) {
            own[c] += sums[other][c][place];
        }
    }
#endif
    const long long column = (long long)g * WIDTH;
    if (lane == OF_WARP || column >= n) {
        return;
    }
    const Vector rounded = narrow<ELEMENT>(own);
    if (column + WIDTH <= n) {
        store_vec16(reinterpret_cast<Vector*>(out + column), rounded);
        return;
    }
#pragma unroll
    for (int c = 0; c < WIDTH; ++c) {
        if (column + c < n) {
            out[column + c] = rounded.e[c];
        }
    }
}
