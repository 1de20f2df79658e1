// y (m, n) = x (m, k) · weights of 4 bits (layout.py), of at most 16 rows, for Hopper and later. Two warps of a block let TMA copy rows of weights into
// shared memory, and one of them writes results; the other warps multiply on tensor cores, 16 output features by 8 rows of x at a time. Definitions:
//   ELEMENT  __nv_bfloat16 or __half
//   INTEGERS 0: products of x and weights as numbers of 16 bits. 1: of the digits of x and q as integers, see `Factors`
//   ROWS     m
//   WARPS    that multiply; each has its own groups of K
//   DEPTH    groups of a warp in a piece. A piece is WARPS · DEPTH groups (at most) of the 16 features of a tile
//   PIECES   that make up K
//   STAGES   pieces in shared memory
//   X_IN_REGISTERS   1 if a warp keeps its numbers of x in registers; else it stores them once in shared memory, in the order of the products
//   WHOLE    1 if the groups of all pieces are groups of K
//   ALIGNED  1 if n is a multiple of 8, so that the scales of two features are one access; else they are loaded one by one
//   COPY_X   bytes of one access to x: 16, or 2 if its rows do not begin at multiples of 16
// Rows 0 and 8, 1 and 9, … of a product are neighbouring features, whose zero points are one byte. So the blocks read, at any time, neighbouring tiles.
#include "bulk.cuh"
#if INTEGERS
#include "mma_integers.cuh"
#else
#include "four_bit.cuh"
#endif

constexpr int COPIERS = 2;  // warps: to begin 16 copies takes a thread about as long as the copy of 8 KB
constexpr int GROUP = 128, THREADS = 32 * (WARPS + COPIERS), FEATURES = 16, PIECE_GROUPS = WARPS * DEPTH;
constexpr int ROWS_OF_PRODUCT = INTEGERS ? 2 : 8, COLUMNS = (ROWS + ROWS_OF_PRODUCT - 1) / ROWS_OF_PRODUCT;  // products side by side
// Rows in shared memory are 32 bytes apart from a multiple of 64, so that eight threads read 16 bytes from two of every second row without conflicts.
constexpr int PITCH = PIECE_GROUPS * 64 + 32, STAGE = FEATURES * PITCH;
constexpr int SUM_PITCH = FEATURES + 4, SUMS = 4 * SUM_PITCH * ROWS;  // numbers of a row; bytes of a warp
constexpr int SUM_BUFFERS = 1 + STAGES / PIECES;  // a warp that fills one knows that the result of the tile that had it before was written
static_assert(ROWS <= 16 && STAGES >= 2, "a piece is copied while another is used");

// Of two neighbouring features and a group, as they are stored.
struct Meta {
    unsigned scales, zeros;
};

// Addresses of them.
struct Place {
    const char *scales, *zeros;
};

struct Source {
    const char *weights, *scales, *zeros;
    int n, groups;

    // Where the scales and zero points of a group and of feature `feature`, which is even, begin.
    __device__ __forceinline__ Place place(int feature, int group) const {
        return {scales + ((long long)group * n + feature) * 2, zeros + (long long)group * ((n + 1) / 2) + feature / 2};
    }
    // Of the group `further` groups after that of a place, where those of `feature` begin. Zeros if not `used`.
    __device__ __forceinline__ Meta meta(const Place& from, int further, int feature, bool used) const {
        Meta both = {};
        if (used && feature < n) {
            const char* scale = from.scales + (long long)n * (2 * further);
            both.zeros = *reinterpret_cast<const unsigned char*>(from.zeros + (long long)((n + 1) / 2) * further);
            if constexpr (ALIGNED) {
                both.scales = *reinterpret_cast<const unsigned*>(scale);
            } else {
                both.scales = *reinterpret_cast<const unsigned short*>(scale);
                if (feature + 1 < n) {
                    both.scales |= unsigned(reinterpret_cast<const unsigned short*>(scale)[1]) << 16;
                }
            }
        }
        return both;
    }
    // Begins the copies of one piece of a tile; each of the COPIERS warps those of some rows. What is expected may be announced after copies began.
    __device__ __forceinline__ void copy(unsigned to, unsigned full, int tile, int piece, int copier, int lane) const {
        constexpr int EACH = FEATURES / COPIERS;
        const int first = piece * PIECE_GROUPS, count = min(groups - first, PIECE_GROUPS);
        if (lane == 0) {
            if (copier == 0) {
                barrier_expect(full, FEATURES * 64 * count);
            }
            // Features after the last one are replaced by it: what is computed of them is not stored.
            const int begin = tile * FEATURES + copier * EACH;
            const char* from = weights + ((long long)min(begin, n - 1) * groups + first) * 64;
#pragma unroll
            for (int i = 0; i < EACH; ++i) {
                copy_bulk(to + (copier * EACH + i) * PITCH, from, 64 * count, full);
                from += begin + i + 1 < n ? groups * 64 : 0;
            }
        }
        __syncwarp();
#pragma unroll
        for (int i = 0; i < PIECE_GROUPS; i += 32) {
            if (i + lane < count) {
                const long long group = first + i + lane, feature = tile * FEATURES;
                prefetch_to_l2(copier == 0 ? scales + (group * n + feature) * 2 : zeros + group * ((n + 1) / 2) + feature / 2);
            }
        }
        __syncwarp();
    }
};

// Eight neighbouring numbers of a row of x, from number `first` on; zeros after the last one, number k - 1.
__device__ __forceinline__ uint4 eight_of_x(const char* from, long long first, long long k) {
    uint4 all = {};
    if constexpr (COPY_X == 16) {
        if (first < k) {
            all = *reinterpret_cast<const uint4*>(from);
        }
    } else {
        unsigned bits[4] = {};
#pragma unroll
        for (int j = 0; j < 8; ++j) {
            if (first + j < k) {
                bits[j / 2] |= unsigned(reinterpret_cast<const unsigned short*>(from)[j]) << j % 2 * 16;
            }
        }
        all = {bits[0], bits[1], bits[2], bits[3]};
    }
    return all;
}

#if INTEGERS
// Products of integers. Eight numbers q of 4 bits need three logic instructions to be bytes, and seven to be numbers of bfloat16. x is written with three
// digits, each a signed byte, for each group and row: x = scale · (digit 0 + 256 · digit 1 + 65536 · digit 2), where the scale is a power of two that makes
// the largest |x| of the group 2^21 or more, but less than 2^22. So what is left out is at most 2^-22 of the largest, as little as a sum in fp32 leaves
// out. Columns 4r to 4r + 3 of a product are the digits of row r and a zero. All sums of a group are exact.
constexpr int X_BYTES = X_IN_REGISTERS ? 0 : 1024 * COLUMNS + 64 * COLUMNS;

struct Factors {
    uint2 of[COLUMNS][4];  // digits of the thread's column: numbers 0 2 4 6, then 1 3 5 7, of eight neighbouring ones
    // Of the columns of the thread's sums, 2 (lane % 4) and the next one: minus the sum of the digits; and the scale of their row.
    float digits[COLUMNS][2], scale[COLUMNS];
    unsigned loaded[COLUMNS][16];

    __device__ __forceinline__ void load(const char* x, long long k, int group, int lane) {
#pragma unroll
        for (int column = 0; column < COLUMNS; ++column) {
            const int row = min(2 * column + lane / 16, ROWS - 1);  // columns after the last one are not stored
            const long long first = (long long)group * GROUP + lane % 4 * 32;
            const char* from = x + (row * k + first) * 2;
#pragma unroll
            for (int word = 0; word < 4; ++word) {
                const uint4 all = eight_of_x(from + 16 * word, first + 8 * word, k);
                loaded[column][4 * word] = all.x, loaded[column][4 * word + 1] = all.y;
                loaded[column][4 * word + 2] = all.z, loaded[column][4 * word + 3] = all.w;
            }
        }
    }
    __device__ __forceinline__ void prepare(int lane) {
        const unsigned digit = lane / 4 % 4;
#pragma unroll
        for (int column = 0; column < COLUMNS; ++column) {
            // The largest |x| as the bits of an fp32 number, which compare as it does; those of NaN are larger than those of infinity.
            unsigned largest = 0;
#pragma unroll
            for (int i = 0; i < 16; ++i) {
                float low, high;
                Halves<ELEMENT>::split(loaded[column][i], low, high);
                largest = max(largest, max(__float_as_uint(low) & 0x7fffffffu, __float_as_uint(high) & 0x7fffffffu));
            }
#pragma unroll
            for (int mask = 1; mask < 4; mask *= 2) {
                largest = max(largest, __float_as_uint(of_lane(__uint_as_float(largest), lane ^ mask)));
            }
            const unsigned exponent = max(largest >> 23, 22u);  // 22: the scale of smaller numbers would not be a normal number
            const float to_integers = __uint_as_float((275 - exponent) << 23), not_a_number = __uint_as_float(0x7fc00000u);
            const float scale_of_column = exponent == 255 ? not_a_number : __uint_as_float((exponent - 21) << 23);
            int sum = 0;
#pragma unroll
            for (int word = 0; word < 4; ++word) {
                unsigned bytes[2];
#pragma unroll
                for (int odd = 0; odd < 2; ++odd) {
                    unsigned shifted[4];
#pragma unroll
                    for (int i = 0; i < 4; ++i) {
                        float low, high;
                        Halves<ELEMENT>::split(loaded[column][4 * word + i], low, high);
                        // The sum with 1.5 · 2^23 is rounded to a whole number. Each of the three bytes becomes 128 + the digit.
                        shifted[i] = __float_as_uint(multiply_add(odd ? high : low, to_integers, INTEGERS_AS_FLOATS)) - INTEGER_ZERO + 0x808080u;
                    }
                    const unsigned two = digit | (4 + digit) << 4;
                    const unsigned four = permute_bytes(permute_bytes(shifted[0], shifted[1], two), permute_bytes(shifted[2], shifted[3], two), 0x5410);
                    bytes[odd] = digit == 3 ? 0 : four ^ 0x80808080u;
                    sum = add_bytes(sum, bytes[odd]);
                }
                of[column][word] = {bytes[0], bytes[1]};
            }
            float sum_of_digits = float(sum);
#pragma unroll
            for (int mask = 1; mask < 4; mask *= 2) {
                sum_of_digits = sum_of_two_lanes(sum_of_digits, mask);
            }
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                digits[column][j] = -of_lane(sum_of_digits, 4 * (lane % 4 * 2 + j));
            }
            scale[column] = of_lane(scale_of_column, lane % 4 * 8);
        }
    }
    // To and from shared memory. `at`: of the group.
    __device__ __forceinline__ void write(unsigned at, int lane) const {
#pragma unroll
        for (int column = 0; column < COLUMNS; ++column) {
            const unsigned from = at + 1088 * column;
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const uint2 first = of[column][2 * half], second = of[column][2 * half + 1];
                write_shared(from + 512 * half + lane * 16, uint4{first.x, first.y, second.x, second.y});
            }
            if (lane < 4) {
                write_shared(from + 1024 + lane * 16,
                             uint4{__float_as_uint(digits[column][0]), __float_as_uint(digits[column][1]), __float_as_uint(scale[column]), 0});
            }
        }
    }
    __device__ __forceinline__ void read(unsigned at, int lane) {
#pragma unroll
        for (int column = 0; column < COLUMNS; ++column) {
            const unsigned from = at + 1088 * column;
            uint4 bits;
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                load_shared(bits, from + 512 * half + lane * 16);
                of[column][2 * half] = {bits.x, bits.y}, of[column][2 * half + 1] = {bits.z, bits.w};
            }
            load_shared(bits, from + 1024 + lane % 4 * 16);
            digits[column][0] = __uint_as_float(bits.x), digits[column][1] = __uint_as_float(bits.y), scale[column] = __uint_as_float(bits.z);
        }
    }
};

// Adds the products of 16 features and a group. `row`: address of the thread's 16 bytes of the first of its two features.
__device__ __forceinline__ void add(float (&total)[COLUMNS][4], const Factors& x, Meta meta, unsigned row) {
    uint4 weights[2];
    load_shared(weights[0], row);
    load_shared(weights[1], row + PITCH);
    int sums[COLUMNS][4];  // and INTEGER_ZERO: less than 2^22, so that their bits are those of the fp32 number INTEGERS_AS_FLOATS + sum
#pragma unroll
    for (int column = 0; column < COLUMNS; ++column) {
        sums[column][0] = sums[column][1] = sums[column][2] = sums[column][3] = INTEGER_ZERO;
    }
#pragma unroll
    for (int word = 0; word < 4; ++word) {
        unsigned a[4];
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const uint4& all = weights[half];
            const unsigned bits = word == 0 ? all.x : word == 1 ? all.y : word == 2 ? all.z : all.w;
            a[half] = bits & 0x0f0f0f0fu, a[2 + half] = bits >> 4 & 0x0f0f0f0fu;
        }
#pragma unroll
        for (int column = 0; column < COLUMNS; ++column) {
            multiply_add_bytes(sums[column], a, {x.of[column][word].x, x.of[column][word].y});
        }
    }
    float scales[2];
    Halves<ELEMENT>::split(meta.scales, scales[0], scales[1]);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        // The bits of 2^23 + zero.
        const float zero = __uint_as_float((meta.zeros >> 4 * half & 15) | 0x4b000000u) - 8388608.0f;
#pragma unroll
        for (int column = 0; column < COLUMNS; ++column) {
            const float scale = scales[half] * x.scale[column];
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                const float less = multiply_add(zero, x.digits[column][j], -INTEGERS_AS_FLOATS);
                const float sum = __uint_as_float(unsigned(sums[column][2 * half + j])) + less;
                total[column][2 * half + j] = multiply_add(scale, sum, total[column][2 * half + j]);
            }
        }
    }
}

// Of the sums of the thread's two columns, and of the two of its neighbour, those of digits of one row: total[0] and total[2] of lanes 0 and 1 of
// four become the sums of rows 0 and 1.
__device__ __forceinline__ void sums_of_rows(float (&total)[4]) {
    const int lane = threadIdx.x % 32;
    const float first = lane % 2 ? 65536.0f : 1.0f, second = lane % 2 ? 0.0f : 256.0f;  // column 3 is zero
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const float sum = sum_of_two_lanes(first * total[2 * half] + second * total[2 * half + 1], 1);
        total[2 * half] = of_lane(sum, lane / 4 * 4 + lane % 2 * 2);
    }
}
#else
using Weights = FourBit<ELEMENT>;
constexpr int X_OF_GROUP = 4 * ROWS * 64, X_SUMS_OF_GROUP = 64 * COLUMNS, X_BYTES = X_IN_REGISTERS ? 0 : X_OF_GROUP + X_SUMS_OF_GROUP;

// Numbers of x of one group, as products need them: 16 bytes are 8 neighbouring numbers of a row in the order 0 4 2 6 1 5 3 7; and for the rows of
// the thread's sums: the sum of x, and minus the sum of x times what `pairs` adds to a weight.
struct Factors {
    uint4 of[COLUMNS][4];
    float sums[COLUMNS][2], added[COLUMNS][2];

    __device__ __forceinline__ void load(const char* x, long long k, int group, int lane) {
#pragma unroll
        for (int column = 0; column < COLUMNS; ++column) {
            const int row = min(8 * column + lane / 4, ROWS - 1);  // columns after the last one are not stored
            const long long first = (long long)group * GROUP + lane % 4 * 32;
            const char* from = x + (row * k + first) * 2;
#pragma unroll
            for (int word = 0; word < 4; ++word) {
                of[column][word] = eight_of_x(from + 16 * word, first + 8 * word, k);
            }
        }
    }
    __device__ __forceinline__ void prepare(int lane) {
#pragma unroll
        for (int column = 0; column < COLUMNS; ++column) {
            float even = 0.0f, odd = 0.0f;
#pragma unroll
            for (int word = 0; word < 4; ++word) {
                const uint4 all = of[column][word];
                const unsigned bits[4] = {all.x, all.y, all.z, all.w};
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    float low, high;
                    Halves<ELEMENT>::split(bits[i], low, high);
                    even += low;
                    odd += high;
                }
                of[column][word] = {(all.x & 0xffffu) | all.z << 16, (all.y & 0xffffu) | all.w << 16, all.x >> 16 | (all.z & 0xffff0000u),
                                    all.y >> 16 | (all.w & 0xffff0000u)};
            }
#pragma unroll
            for (int mask = 1; mask < 4; mask *= 2) {
                even = sum_of_two_lanes(even, mask);
                odd = sum_of_two_lanes(odd, mask);
            }
            // Of row lane / 4; the thread's sums are of rows 2 (lane % 4) and the next one.
            const float added_of_row = -(Weights::EVEN * even + Weights::ODD * odd), sum = even + odd;
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                sums[column][j] = of_lane(sum, 4 * (lane % 4 * 2 + j));
                added[column][j] = of_lane(added_of_row, 4 * (lane % 4 * 2 + j));
            }
        }
    }
    // To and from shared memory. `at`: of the group.
    __device__ __forceinline__ void write(unsigned at, int lane) const {
#pragma unroll
        for (int column = 0; column < COLUMNS; ++column) {
            if (const int row = 8 * column + lane / 4; row < ROWS) {
#pragma unroll
                for (int word = 0; word < 4; ++word) {
                    write_shared(at + (word * ROWS + row) * 64 + lane % 4 * 16, of[column][word]);
                }
            }
            if (lane < 4) {
                write_shared(at + X_OF_GROUP + 64 * column + 16 * lane, uint4{__float_as_uint(sums[column][0]), __float_as_uint(added[column][0]),
                                                                             __float_as_uint(sums[column][1]), __float_as_uint(added[column][1])});
            }
        }
    }
    __device__ __forceinline__ void read(unsigned at, int lane) {
#pragma unroll
        for (int column = 0; column < COLUMNS; ++column) {
            const int row = min(8 * column + lane / 4, ROWS - 1);
#pragma unroll
            for (int word = 0; word < 4; ++word) {
                load_shared(of[column][word], at + (word * ROWS + row) * 64 + lane % 4 * 16);
            }
            uint4 bits;
            load_shared(bits, at + X_OF_GROUP + 64 * column + 16 * (lane % 4));
            sums[column][0] = __uint_as_float(bits.x), added[column][0] = __uint_as_float(bits.y);
            sums[column][1] = __uint_as_float(bits.z), added[column][1] = __uint_as_float(bits.w);
        }
    }
};

// Adds the products of 16 features and a group. `row`: address of the thread's 16 bytes of the first of its two features.
__device__ __forceinline__ void add(float (&total)[COLUMNS][4], const Factors& x, Meta meta, unsigned row) {
    uint4 weights[2];
    load_shared(weights[0], row);
    load_shared(weights[1], row + PITCH);
    float even[COLUMNS][4], odd[COLUMNS][4] = {};
#pragma unroll
    for (int column = 0; column < COLUMNS; ++column) {
#pragma unroll
        for (int j = 0; j < 2; ++j) {
            // If both are equal, a multiplication (exact, by a power of two) saves registers.
            even[column][j] = even[column][2 + j] = Weights::EVEN == Weights::ODD ? -Weights::EVEN * x.sums[column][j] : x.added[column][j];
        }
    }
#pragma unroll
    for (int word = 0; word < 4; ++word) {
        unsigned a[2][4];
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const uint4& all = weights[half];
            Weights::pairs(a[half], word == 0 ? all.x : word == 1 ? all.y : word == 2 ? all.z : all.w);
        }
#pragma unroll
        for (int column = 0; column < COLUMNS; ++column) {
            const uint4& b = x.of[column][word];
            TensorCore<ELEMENT>::multiply_add(even[column], {a[0][0], a[1][0], a[0][2], a[1][2]}, {b.x, b.y});
            TensorCore<ELEMENT>::multiply_add(odd[column], {a[0][1], a[1][1], a[0][3], a[1][3]}, {b.z, b.w});
        }
    }
    float scales[2];
    Halves<ELEMENT>::split(meta.scales, scales[0], scales[1]);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const float zero = float(int(meta.zeros >> 4 * half & 15));
#pragma unroll
        for (int column = 0; column < COLUMNS; ++column) {
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                const float both = even[column][2 * half + j] + Weights::SHARE_OF_ODD * odd[column][2 * half + j];
                total[column][2 * half + j] += scales[half] * (both - zero * x.sums[column][j]);
            }
        }
    }
}

// Of the thread's two columns of a product: the sums of two rows.
__device__ __forceinline__ void sums_of_rows(float (&)[4]) {}
#endif

// Adds the sums of all warps in their order and stores 16 features of y.
__device__ __forceinline__ void store(ELEMENT* y, unsigned sums, int tile, int n, int lane) {
#pragma unroll 1
    for (int i = lane; i < ROWS * (FEATURES / 2); i += 32) {
        const int row = i / (FEATURES / 2), pair = i % (FEATURES / 2), feature = tile * FEATURES + 2 * pair;
        float first = 0.0f, second = 0.0f;
#pragma unroll
        for (int warp = 0; warp < WARPS; ++warp) {
            float one, other;
            read_shared(one, other, sums + warp * SUMS + (row * SUM_PITCH + 2 * pair) * 4);
            first += one;
            second += other;
        }
        ELEMENT* to = y + (long long)row * n + feature;
        if (feature < n) {
            to[0] = ELEMENT(first);
        }
        if (feature + 1 < n) {
            to[1] = ELEMENT(second);
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) w4a16_bulk(
    const char* __restrict__ x, const char* __restrict__ weights, const char* __restrict__ scales, const char* __restrict__ zeros,
    ELEMENT* __restrict__ y, int n, int k) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, tiles = (n + FEATURES - 1) / FEATURES, stride = gridDim.x;
    const unsigned slots = shared_memory(), sums = slots + STAGES * STAGE, x_shared = sums + SUM_BUFFERS * WARPS * SUMS;
    const unsigned full = x_shared + PIECES * PIECE_GROUPS * X_BYTES, empty = full + 8 * STAGES;
    const Source source{weights, scales, zeros, n, (k + GROUP - 1) / GROUP};

    if (threadIdx.x == 0) {
#pragma unroll 1
        for (int stage = 0; stage < STAGES; ++stage) {
            barrier_init(full + 8 * stage, 1);
            barrier_init(empty + 8 * stage, WARPS);
        }
        barrier_init_done();
    }
    __syncthreads();

    if (warp >= WARPS) {
        const int copier = warp - WARPS;
        // The copy of piece i may overwrite piece i - STAGES, which all warps have then left; so it begins in the step that waits for those.
        int next_tile = blockIdx.x, next_piece = 0, slot = 0, parity = 0, buffer = 0;
#pragma unroll 1
        for (int stage = 0; stage < STAGES && next_tile < tiles; ++stage) {
            source.copy(slots + stage * STAGE, full + 8 * stage, next_tile, next_piece, copier, lane);
            next_piece = next_piece + 1 == PIECES ? 0 : next_piece + 1;
            next_tile += next_piece == 0 ? stride : 0;
        }
#pragma unroll 1
        for (int tile = blockIdx.x; tile < tiles; tile += stride) {
#pragma unroll 1
            for (int piece = 0; piece < PIECES; ++piece) {
                barrier_wait(empty + 8 * slot, parity);
                if (next_tile < tiles) {
                    source.copy(slots + slot * STAGE, full + 8 * slot, next_tile, next_piece, copier, lane);
                    next_piece = next_piece + 1 == PIECES ? 0 : next_piece + 1;
                    next_tile += next_piece == 0 ? stride : 0;
                }
                slot = slot + 1 == STAGES ? 0 : slot + 1;
                parity ^= slot == 0;
            }
            if (copier == 0) {
                store(y, sums + buffer * (WARPS * SUMS), tile, n, lane);
            }
            buffer = buffer + 1 == SUM_BUFFERS ? 0 : buffer + 1;
        }
    } else {
        Factors kept[X_IN_REGISTERS ? PIECES : 1][DEPTH];
        Meta next[PIECES][DEPTH];
        const int pair = lane / 4 * 2;  // the first of the thread's two features in a tile
        Place place = source.place(blockIdx.x * FEATURES + pair, warp);
        const unsigned own_x = x_shared + warp * PIECES * DEPTH * X_BYTES;
#pragma unroll
        for (int i = 0; i < PIECES * DEPTH; ++i) {
            next[i / DEPTH][i % DEPTH] = source.meta(place, i * WARPS, blockIdx.x * FEATURES + pair, WHOLE || i * WARPS + warp < source.groups);
        }
#pragma unroll(X_IN_REGISTERS ? PIECES : 1)
        for (int piece = 0; piece < PIECES; ++piece) {
            Factors(&factors)[DEPTH] = kept[X_IN_REGISTERS ? piece : 0];
#pragma unroll
            for (int i = 0; i < DEPTH; ++i) {
                factors[i].load(x, k, (piece * DEPTH + i) * WARPS + warp, lane);
            }
#pragma unroll
            for (int i = 0; i < DEPTH; ++i) {
                factors[i].prepare(lane);
                if constexpr (!X_IN_REGISTERS) {
                    factors[i].write(own_x + (piece * DEPTH + i) * X_BYTES, lane);
                }
            }
        }
        __syncwarp();
        int slot = 0, parity = 0, buffer = 0;
#pragma unroll 1
        for (int tile = blockIdx.x; tile < tiles; tile += stride) {
            float total[COLUMNS][4] = {};
            place.scales += 2 * FEATURES * stride;
            place.zeros += FEATURES / 2 * stride;
#pragma unroll
            for (int piece = 0; piece < PIECES; ++piece) {
                Meta meta[DEPTH];
#pragma unroll
                for (int i = 0; i < DEPTH; ++i) {
                    meta[i] = next[piece][i];
                }
                barrier_wait(full + 8 * slot, parity);
#pragma unroll
                for (int i = 0; i < DEPTH; ++i) {
                    // Groups after the last one have scales of zero; what is read of them are weights of another one.
                    const int group = (piece * DEPTH + i) * WARPS + warp, last = source.groups - 1 - piece * PIECE_GROUPS;
                    const int further = (piece * DEPTH + i) * WARPS;
                    next[piece][i] = source.meta(place, further, (tile + stride) * FEATURES + pair, WHOLE || group < source.groups);
                    Factors factors;
                    if constexpr (X_IN_REGISTERS) {
                        factors = kept[piece][i];
                    } else {
                        factors.read(own_x + (piece * DEPTH + i) * X_BYTES, lane);
                    }
                    const int in_piece = WHOLE ? i * WARPS + warp : max(min(i * WARPS + warp, last), 0);
                    add(total, factors, meta[i], slots + slot * STAGE + pair * PITCH + in_piece * 64 + lane % 4 * 16);
                }
                if (piece == PIECES - 1) {
                    const unsigned to = sums + (buffer * WARPS + warp) * SUMS;
#pragma unroll
                    for (int column = 0; column < COLUMNS; ++column) {
                        sums_of_rows(total[column]);
#pragma unroll
                        for (int j = 0; j < (INTEGERS ? 1 : 2); ++j) {
                            const int row = INTEGERS ? 2 * column + lane % 4 : 8 * column + lane % 4 * 2 + j;
                            if (row < ROWS && (!INTEGERS || lane % 4 < 2)) {
                                write_shared(to + (row * SUM_PITCH + pair) * 4, total[column][j], total[column][2 + j]);
                            }
                        }
                    }
                    buffer = buffer + 1 == SUM_BUFFERS ? 0 : buffer + 1;
                }
                __syncwarp();
                if (lane == 0) {
                    barrier_arrive(empty + 8 * slot);
                }
                slot = slot + 1 == STAGES ? 0 : slot + 1;
                parity ^= slot == 0;
            }
        }
    }
}
