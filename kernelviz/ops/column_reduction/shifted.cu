// CUDA C++ kernel of `column_sum` for rows of any length. ELEMENT is float, __half or __nv_bfloat16; sums are in fp32.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "loads_first.cuh"
#include "skinny.cuh"

// LANES threads of a block side by side, THREADS / LANES below each other. SHIFTED: whether rows may start within a 16-byte vector.
#ifndef LANES
#define LANES 32
#define SHIFTED 1
#endif
constexpr int THREADS = 256, GROUPS = THREADS / LANES, WIDTH = 16 / sizeof(ELEMENT);
// Columns of a strip. A group whose rows start within a vector begins as much before the strip, so its last vector is only partly used.
constexpr int COLUMNS = (LANES - SHIFTED) * WIDTH;
constexpr int BATCH = 8;  // loads of a thread in flight at once: 32 KiB a block
// Rows GROUPS apart start at the same place of a vector, because GROUPS is a multiple of WIDTH: so all rows of a thread do.
static_assert(GROUPS % WIDTH == 0 && COLUMNS > 0);

// Where shared memory has a column of the strip: a warp that writes every WIDTH-th column writes neighbouring numbers.
__device__ __forceinline__ int place_of(int column) { return column % WIDTH * LANES + column / WIDTH; }

// The sums over the rows first .. last - 1 of the columns of a strip, in `sums` by group and place; `shift`: elements by which x starts behind a
// multiple of 16 bytes.
__device__ __forceinline__ void sum_rows(
    const ELEMENT* __restrict__ x, long long first, long long last, long long m, int n, int strip, int shift,
    float (&sums)[GROUPS][LANES * WIDTH]) {
    const int lane = threadIdx.x % LANES, group = threadIdx.x / LANES;
    long long row = first + group;
    const int behind = SHIFTED ? static_cast<int>((row * n + shift) % WIDTH) : 0;
    const int begin = strip * COLUMNS, column = begin + lane * WIDTH - behind;
    float total[WIDTH] = {};
    if (column < n && column < begin + COLUMNS) {
        // In the rows low .. high - 1 the vector lies within the matrix. Its elements outside of the row are of columns of other rows; their sums
        // are not used. In other rows it is read element by element.
        long long low = 0, high = last;
        if (column < 0) {
            low = (n - 1 - column) / n;
        }
        if (column + WIDTH > n) {
            const long long room = m * n - column - WIDTH;
            high = min(last, room < 0 ? 0 : room / n + 1);
        }
        const auto add_elements = [&](long long at) {
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) {
                if (column + e >= 0 && column + e < n) {
                    total[e] += static_cast<float>(x[at * n + column + e]);
                }
            }
        };
        for (; row < min(low, last); row += GROUPS) {
            add_elements(row);
        }
        for (long long at = row; at < high; at += BATCH * GROUPS) {
            uint4 bits[BATCH];
            // Loads under predicates, not a loop over what remains, so that all of them are in flight at once.
#pragma unroll
            for (int b = 0; b < BATCH; ++b) {
                const long long r = at + b * GROUPS;
                bits[b] = r < high ? __ldg(reinterpret_cast<const uint4*>(x + r * n + column)) : uint4{};
            }
            loads_first(bits);
#pragma unroll
            for (int b = 0; b < BATCH; ++b) {
                const ELEMENT* elements = reinterpret_cast<const ELEMENT*>(&bits[b]);
#pragma unroll
                for (int e = 0; e < WIDTH; ++e) {
                    total[e] += static_cast<float>(elements[e]);
                }
            }
        }
        if (row < high) {
            row += (high - row + GROUPS - 1) / GROUPS * GROUPS;
        }
        for (; row < last; row += GROUPS) {
            add_elements(row);
        }
#pragma unroll
        for (int e = 0; e < WIDTH; ++e) {
            const int within = column + e - begin;
            if (within >= 0 && within < COLUMNS) {
                sums[group][place_of(within)] = total[e];
            }
        }
    }
}

// Several blocks a strip of columns, each with `part` rows; the last of a strip to finish adds up their sums, in an order that does not depend on
// which block it is. `arrived` counts the finished blocks of each strip; it is zero before and afterwards.
// `partials`: for each strip and part, the sums of the strip's columns. Without a smallest number of blocks in the launch bounds, ptxas uses 40
// registers and waits for each load before the next.
extern "C" __global__ void __launch_bounds__(THREADS, 3) column_shifted(
    const ELEMENT* __restrict__ x, float* __restrict__ partials, unsigned* __restrict__ arrived, ELEMENT* __restrict__ out,
    long long m, int n, int strips, int parts, long long part, int shift) {
    __shared__ __align__(16) float sums[GROUPS][LANES * WIDTH];
    const int strip = blockIdx.x % strips, piece = blockIdx.x / strips, t = threadIdx.x;
    const long long first = piece * part;
    sum_rows(x, first, min(first + part, m), m, n, strip, shift, sums);
    __syncthreads();
    const int column = strip * COLUMNS + t;
    const bool mine = t < COLUMNS && column < n;
    float sum = 0.0f;
    if (mine) {
#pragma unroll 8
        for (int g = 0; g < GROUPS; ++g) {
            sum += sums[g][place_of(t)];
        }
    }
    if (parts > 1) {
        float* of_strip = partials + (long long)strip * parts * COLUMNS;
        if (t < COLUMNS) {
            of_strip[piece * COLUMNS + t] = sum;
        }
        if (!is_last_to_arrive(arrived + strip, parts)) {
            return;
        }
        // Four columns a thread; ROWS parts are read side by side.
        constexpr int QUADS = COLUMNS / 4, ROWS = THREADS / QUADS;
        float4 four = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (t < QUADS * ROWS) {
            const float4* from = reinterpret_cast<const float4*>(of_strip) + t % QUADS;
            for (int at = t / QUADS; at < parts; at += BATCH * ROWS) {
                float4 read[BATCH];
#pragma unroll
                for (int b = 0; b < BATCH; ++b) {
                    const int p = at + b * ROWS;
                    read[b] = p < parts ? __ldcg(from + p * QUADS) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
                }
#pragma unroll
                for (int b = 0; b < BATCH; ++b) {
                    four = make_float4(four.x + read[b].x, four.y + read[b].y, four.z + read[b].z, four.w + read[b].w);
                }
            }
        }
        // `sums` has THREADS * WIDTH numbers, so four for each thread; is_last_to_arrive has waited for those that read it before.
        float4* quads = reinterpret_cast<float4*>(&sums[0][0]);
        quads[t] = four;
        __syncthreads();
        sum = 0.0f;
        if (mine) {
            for (int r = 0; r < ROWS; ++r) {
                sum += (&sums[0][0])[r * COLUMNS + t];
            }
        }
    }
    if (mine) {
        out[column] = static_cast<ELEMENT>(sum);
    }
}
