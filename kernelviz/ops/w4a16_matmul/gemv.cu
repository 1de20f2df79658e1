// y (m, n) = x (m, k) · weights of 4 bits (layout.py), of at most 8 rows, with ordinary multiply-adds in fp32. Definitions:
//   ELEMENT    __nv_bfloat16 or __half
//   ROWS       m
//   FEATURES   neighbouring output features of a warp: 16-byte loads that a thread has in flight while it multiplies as many
//   WARPS      of a block; a multiprocessor has one block, whose x in shared memory all of them read
//   ALIGNED    1 if n is a multiple of 8, so that scales and zero points of FEATURES features are one access each
// A thread has 32 neighbouring input features at a time, all of one group, and a warp 1024.
#include "packed.cuh"

constexpr int GROUP = 128, THREADS = 32 * WARPS, PASS = 1024, PASS_GROUPS = PASS / GROUP;
static_assert(FEATURES == 2 || FEATURES == 4, "scales are 4 or 8 bytes");

// Bits of the fp32 numbers 128 and 2048. The last bits of a number in [128, 256) count in 2^-16, so 128 | q 2^16 is 128 + q; in [2048, 4096) in 2^-12.
constexpr unsigned FAR = 0x43000000, NEAR = 0x45000000;
constexpr float FAR_NUMBER = 128.0f, NEAR_NUMBER = 2048.0f;

// The eight 4-bit numbers in `bits`, each with FAR_NUMBER or, numbers 1, 3 and 5, NEAR_NUMBER added.
__device__ __forceinline__ void unpack(float (&to)[8], unsigned bits) {
    const unsigned up = bits << 8, down = bits >> 8;
    to[0] = __uint_as_float(and_or(bits << 16, 0x000f0000, FAR));
    to[1] = __uint_as_float(and_or(up, 0x0000f000, NEAR));
    to[2] = __uint_as_float(and_or(up, 0x000f0000, FAR));
    to[3] = __uint_as_float(and_or(bits, 0x0000f000, NEAR));
    to[4] = __uint_as_float(and_or(bits, 0x000f0000, FAR));
    to[5] = __uint_as_float(and_or(down, 0x0000f000, NEAR));
    to[6] = __uint_as_float(and_or(down, 0x000f0000, FAR));
    to[7] = __uint_as_float(and_or(bits >> 12, 0x000f0000, FAR));
}

// What a thread reads of FEATURES features: 32 weights each, and the scales and zero points of their group.
struct Batch {
    uint4 weights[FEATURES];
    unsigned scales[FEATURES / 2], zeros;
};

struct Source {
    const char *weights, *scales, *zeros;
    int n, groups, lane;

    __device__ __forceinline__ void load(Batch& batch, int feature, int pass) const {
        const int group = pass * PASS_GROUPS + lane / 4;
        batch = {};
        if (group < groups) {
#pragma unroll
            for (int i = 0; i < FEATURES; ++i) {
                // Features after the last one are replaced by it: what is computed of them is not stored.
                load_once(batch.weights[i], weights + ((long long)min(feature + i, n - 1) * groups + group) * 64 + lane % 4 * 16);
            }
            const char* scale = scales + ((long long)group * n + feature) * 2;
            const char* zero = zeros + (long long)group * ((n + 1) / 2) + feature / 2;
            if constexpr (ALIGNED && FEATURES == 4) {
                const uint2 both = *reinterpret_cast<const uint2*>(scale);
                batch.scales[0] = both.x;
                batch.scales[FEATURES / 2 - 1] = both.y;
                batch.zeros = *reinterpret_cast<const unsigned short*>(zero);
            } else if constexpr (ALIGNED) {
                batch.scales[0] = *reinterpret_cast<const unsigned*>(scale);
                batch.zeros = *reinterpret_cast<const unsigned char*>(zero);
            } else {
#pragma unroll
                for (int i = 0; i < FEATURES; ++i) {
                    if (feature + i < n) {
                        batch.scales[i / 2] |= unsigned(reinterpret_cast<const unsigned short*>(scale)[i]) << i % 2 * 16;
                        batch.zeros |= (reinterpret_cast<const unsigned char*>(zero)[i / 2] >> i % 2 * 4 & 15u) << 4 * i;
                    }
                }
            }
        }
    }
};

// Address of 16 bytes of x in shared memory: numbers 4 `quarter` to 4 `quarter` + 3 of the 32 of a thread. Neighbouring threads are neighbours.
__device__ __forceinline__ unsigned x_at(unsigned x, int passes, int row, int pass, int quarter, int lane) {
    return x + (((row * passes + pass) * 8 + quarter) * 32 + lane) * 16;
}

// `passes`: of 1024 columns of x each.
extern "C" __global__ void __launch_bounds__(THREADS, 1) w4a16_gemv(
    const char* __restrict__ x, const char* __restrict__ weights, const char* __restrict__ scales, const char* __restrict__ zeros,
    ELEMENT* __restrict__ y, int n, int k, int passes) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, sets = (n + FEATURES - 1) / FEATURES, stride = gridDim.x * WARPS;
    const unsigned x_shared = shared_memory(), sums_of_x = x_shared + ROWS * passes * (PASS * 4);
    const Source source{weights, scales, zeros, n, (k + GROUP - 1) / GROUP, lane};

    int set = blockIdx.x + warp * gridDim.x, pass = 0;
    Batch batch;
    if (set < sets) {
        source.load(batch, set * FEATURES, 0);
    }
    // x as fp32, with zeros after the last column; then, for the 32 numbers of each thread, their sum and what `unpack` adds to it.
#pragma unroll 1
    for (int i = threadIdx.x; i < ROWS * passes * 32; i += THREADS) {
        const int row = i / (passes * 32), thread = i % (passes * 32);
        const unsigned short* from = reinterpret_cast<const unsigned short*>(x) + (long long)row * k + thread * 32;
        float sum = 0.0f, added = 0.0f;
#pragma unroll 1
        for (int quarter = 0; quarter < 8; ++quarter) {
            float numbers[4];
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                float unused;
                Halves<ELEMENT>::split(thread * 32 + quarter * 4 + j < k ? from[quarter * 4 + j] : 0u, numbers[j], unused);
                sum += numbers[j];
            }
            const float first = quarter % 2 ? numbers[0] + numbers[2] + numbers[3] : numbers[0] + numbers[2];
            const float second = quarter % 2 ? numbers[1] : numbers[1] + numbers[3];
            added += FAR_NUMBER * first + NEAR_NUMBER * second;
            write_shared(x_at(x_shared, passes, row, thread / 32, quarter, thread % 32),
                         uint4{__float_as_uint(numbers[0]), __float_as_uint(numbers[1]), __float_as_uint(numbers[2]), __float_as_uint(numbers[3])});
        }
        write_shared(sums_of_x + i * 8, sum);
        write_shared(sums_of_x + i * 8 + 4, added);
    }
    __syncthreads();

    float totals[FEATURES][ROWS] = {};
#pragma unroll 1
    while (set < sets) {
        const bool is_last = pass == passes - 1;
        const int next_set = is_last ? set + stride : set, next_pass = is_last ? 0 : pass + 1;
        Batch next = {};
        if (next_set < sets) {
            source.load(next, next_set * FEATURES, next_pass);
        }
        float sums[FEATURES][ROWS];
#pragma unroll
        for (int row = 0; row < ROWS; ++row) {
            uint2 bits;
            load_shared(bits, sums_of_x + ((row * passes + pass) * 32 + lane) * 8);
#pragma unroll
            for (int i = 0; i < FEATURES; ++i) {
                sums[i][row] = -(float(int(batch.zeros >> 4 * i & 15)) * __uint_as_float(bits.x) + __uint_as_float(bits.y));
            }
        }
#pragma unroll
        for (int word = 0; word < 4; ++word) {
            float numbers[FEATURES][8];
#pragma unroll
            for (int i = 0; i < FEATURES; ++i) {
                const uint4& all = batch.weights[i];
                unpack(numbers[i], word == 0 ? all.x : word == 1 ? all.y : word == 2 ? all.z : all.w);
            }
#pragma unroll
            for (int row = 0; row < ROWS; ++row) {
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    uint4 four;
                    load_shared(four, x_at(x_shared, passes, row, pass, 2 * word + half, lane));
#pragma unroll
                    for (int i = 0; i < FEATURES; ++i) {
                        sums[i][row] += __uint_as_float(four.x) * numbers[i][4 * half];
                        sums[i][row] += __uint_as_float(four.y) * numbers[i][4 * half + 1];
                        sums[i][row] += __uint_as_float(four.z) * numbers[i][4 * half + 2];
                        sums[i][row] += __uint_as_float(four.w) * numbers[i][4 * half + 3];
                    }
                }
            }
        }
#pragma unroll
        for (int i = 0; i < FEATURES; ++i) {
            float scale[2];
            Halves<ELEMENT>::split(batch.scales[i / 2], scale[0], scale[1]);
#pragma unroll
            for (int row = 0; row < ROWS; ++row) {
                totals[i][row] += scale[i % 2] * sums[i][row];
            }
        }
        if (is_last) {
#pragma unroll
            for (int i = 0; i < FEATURES; ++i) {
#pragma unroll
                for (int row = 0; row < ROWS; ++row) {
                    float sum = totals[i][row];
#pragma unroll
                    for (int mask = 1; mask < 32; mask *= 2) {
                        sum = sum_of_two_lanes(sum, mask);
                    }
                    if (lane == (i * ROWS + row) % 32 && set * FEATURES + i < n) {
                        y[(long long)row * n + set * FEATURES + i] = ELEMENT(sum);
                    }
                    totals[i][row] = 0.0f;
                }
            }
        }
        batch = next;
        set = next_set;
        pass = next_pass;
    }
}
