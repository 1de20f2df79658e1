// CUDA C++ kernel of `column_sum` for few columns. ELEMENT is float, __half or __nv_bfloat16; sums are in fp32.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "loads_first.cuh"

constexpr int MOST_THREADS = 512, WIDTH = 16 / sizeof(ELEMENT);
constexpr int BATCH = 8;  // 16-byte loads of a thread in flight at once, 64 KiB a block

// Adds up `copies` vectors of n numbers that lie one after the other; the sums replace the first. By all threads of the block. Four at a time, so that
// there are half as many barriers as with two.
__device__ __forceinline__ void fold(float* values, int n, int copies) {
    while (copies > 1) {
        const int left = (copies + 3) / 4, numbers = copies * n, step = left * n;
        for (int i = threadIdx.x; i < step; i += blockDim.x) {
            float read[4];
#pragma unroll
            for (int k = 0; k < 4; ++k) {
                read[k] = i + k * step < numbers ? values[i + k * step] : 0.0f;
            }
            values[i] = (read[0] + read[1]) + (read[2] + read[3]);
        }
        __syncthreads();
        copies = left;
    }
}

// The matrix is read as one vector of `size` elements, whatever its rows are. `active` threads of each block load 16-byte vectors side by side;
// active * WIDTH is a multiple of n, so each element of a thread's vectors is of the same column in every step. Column c of the matrix is number
// c - head modulo n of the sums, because the first 16-byte vector starts `head` elements behind x.
// The last block waits for the sums of the others. A sum and the sign that it is there are one number of 64 bits, so that neither a fence nor an
// atomic operation is needed, each of which takes about as long as an access of the L2. All blocks are resident at once. `slots`: for each number of
// each block, 0 before and afterwards.
extern "C" __global__ void __launch_bounds__(MOST_THREADS, 2) column_periodic(
    const ELEMENT* __restrict__ x, volatile unsigned long long* slots, ELEMENT* __restrict__ out, long long size, int n, int active) {
    __shared__ __align__(16) float values[MOST_THREADS * WIDTH];
    __shared__ float edge[2 * WIDTH];
    __shared__ int number_of_edge[2 * WIDTH];
    const int t = threadIdx.x;
    // Elements before the first whole vector (a view may start anywhere) and after the last: fewer than 2 WIDTH, read by the first block.
    const long long before = (16 - reinterpret_cast<unsigned long long>(x) % 16) % 16 / sizeof(ELEMENT);
    const int head = static_cast<int>(min(before, size));
    const long long count = (size - head) / WIDTH;
    const int edges = static_cast<int>(size - count * WIDTH);
    if (blockIdx.x == 0 && t < edges) {
        const long long from_first_vector = (t < head ? t : count * WIDTH + t) - head;
        edge[t] = static_cast<float>(x[head + from_first_vector]);
        number_of_edge[t] = static_cast<int>((from_first_vector % n + n) % n);
    }
    const uint4* vectors = reinterpret_cast<const uint4*>(x + head);
    const long long step = static_cast<long long>(gridDim.x) * active;
    if (t < active) {
        float total[WIDTH] = {};
        for (long long at = static_cast<long long>(blockIdx.x) * active + t; at < count; at += BATCH * step) {
            uint4 bits[BATCH];
            // Loads under predicates, not a loop over what remains, so that all of them are in flight at once.
#pragma unroll
            for (int b = 0; b < BATCH; ++b) {
                bits[b] = at + b * step < count ? __ldg(vectors + at + b * step) : uint4{};
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
#pragma unroll
        for (int e = 0; e < WIDTH; e += 4) {
            reinterpret_cast<float4*>(values)[(t * WIDTH + e) / 4] = make_float4(total[e], total[e + 1], total[e + 2], total[e + 3]);
        }
    }
    __syncthreads();
    const int copies = active * WIDTH / n;
    fold(values, n, copies);
    if (blockIdx.x == 0) {
        for (int c = t; c < n; c += blockDim.x) {
            for (int i = 0; i < edges; ++i) {
                values[c] += number_of_edge[i] == c ? edge[i] : 0.0f;
            }
        }
    }
    if (gridDim.x > 1) {
        constexpr unsigned long long PRESENT = 1ull << 32;
        const int others = gridDim.x - 1;
        if (blockIdx.x < others) {
            for (int c = t; c < n; c += blockDim.x) {
                slots[(long long)blockIdx.x * n + c] = PRESENT | __float_as_uint(values[c]);
            }
            return;
        }
        // Again numbers that are a multiple of n apart: thread t adds up those of the places t, t + blockDim.x, … of `values`.
        const int places = copies * n, numbers = others * n;
        float sums[WIDTH];
#pragma unroll
        for (int e = 0; e < WIDTH; ++e) {
            const int place = t + e * blockDim.x;
            sums[e] = place < n ? values[place] : 0.0f;
        }
        // 16 loads of a thread in flight at once, whatever the width: each round of them takes as long as a trip to the L2. More of them are
        // more instructions, which no other block has fetched.
        constexpr int AHEAD = 16 / WIDTH;
#pragma unroll 1
        for (int first = 0; first < numbers; first += AHEAD * places) {
            unsigned long long read[AHEAD][WIDTH];
            const auto slot_of = [&](int a, int e) {
                const int place = t + e * blockDim.x;
                return (place < places ? first + place : numbers) + a * places;
            };
            bool is_missing;
#pragma unroll 1
            do {
                is_missing = false;
#pragma unroll
                for (int a = 0; a < AHEAD; ++a) {
#pragma unroll
                    for (int e = 0; e < WIDTH; ++e) {
                        const int at = slot_of(a, e);
                        read[a][e] = at < numbers ? slots[at] : PRESENT;
                    }
                }
#pragma unroll
                for (int a = 0; a < AHEAD; ++a) {
#pragma unroll
                    for (int e = 0; e < WIDTH; ++e) {
                        is_missing |= read[a][e] == 0;
                    }
                }
            } while (is_missing);
#pragma unroll
            for (int a = 0; a < AHEAD; ++a) {
#pragma unroll
                for (int e = 0; e < WIDTH; ++e) {
                    const int at = slot_of(a, e);
                    if (at < numbers) {
                        slots[at] = 0;
                    }
                    sums[e] += __uint_as_float(static_cast<unsigned>(read[a][e]));
                }
            }
        }
#pragma unroll
        for (int e = 0; e < WIDTH; ++e) {
            const int place = t + e * blockDim.x;
            if (place < places) {
                values[place] = sums[e];
            }
        }
        __syncthreads();
        fold(values, n, min(copies, static_cast<int>(gridDim.x)));
    }
    for (int c = t; c < n; c += blockDim.x) {
        out[(c + head) % n] = static_cast<ELEMENT>(values[c]);
    }
}
