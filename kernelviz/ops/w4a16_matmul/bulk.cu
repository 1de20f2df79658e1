// y (m, n) = x (m, k) · weights of 4 bits (layout.py), of at most 16 rows, for Hopper and later. Two warps of a block let TMA copy rows of weights into
// shared memory, and one of them writes results; the other warps multiply on tensor cores, 16 output features by 8 rows of x at a time. Definitions:
//   ELEMENT  __nv_bfloat16 or __half
//   ROWS     m
//   WARPS    that multiply; each has its own groups of K
//   DEPTH    groups of a warp in a piece. A piece is WARPS · DEPTH groups (at most) of the 16 features of a tile
//   PIECES   that make up K
//   STAGES   pieces in shared memory
//   X_IN_REGISTERS   1 if a warp keeps its numbers of x in registers; else it stores them once in shared memory, in the order of the products
//   ALIGNED  1 if n is a multiple of 8, so that the scales of two features are one access; else they are loaded one by one
//   COPY_X   bytes of one access to x: 16, or 2 if its rows do not begin at multiples of 16
// Rows 0 and 8, 1 and 9, … of a product are neighbouring features, whose zero points are one byte. So the blocks read, at any time, neighbouring tiles.
#include "bulk.cuh"
#include "four_bit.cuh"

using Weights = FourBit<ELEMENT>;
constexpr int COPIERS = 2;  // warps: to begin 16 copies takes a thread about as long as the copy of 8 KB
constexpr int GROUP = 128, THREADS = 32 * (WARPS + COPIERS), FEATURES = 16, PIECE_GROUPS = WARPS * DEPTH;
constexpr int COLUMNS = (ROWS + 7) / 8;  // products side by side, each of 8 rows of x
// Rows in shared memory are 32 bytes apart from a multiple of 64, so that eight threads read 16 bytes from two of every second row without conflicts.
constexpr int PITCH = PIECE_GROUPS * 64 + 32, STAGE = FEATURES * PITCH;
constexpr int SUM_PITCH = FEATURES + 4, SUMS = 4 * SUM_PITCH * ROWS;  // numbers of a row; bytes of a warp
constexpr int SUM_BUFFERS = 1 + STAGES / PIECES;  // a warp that fills one knows that the result of the tile that had it before was written
static_assert(ROWS <= 16 && STAGES >= 2, "a piece is copied while another is used");

// Of two neighbouring features and a group, as they are stored.
struct Meta {
    unsigned scales, zeros;
};

struct Source {
    const char *weights, *scales, *zeros;
    int n, groups;

    __device__ __forceinline__ Meta meta(int feature, int group) const {
        Meta both = {};
        if (group < groups && feature < n) {
            const char* scale = scales + ((long long)group * n + feature) * 2;
            both.zeros = reinterpret_cast<const unsigned char*>(zeros)[(long long)group * ((n + 1) / 2) + feature / 2];
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
                uint4 all = {};
                if constexpr (COPY_X == 16) {
                    if (first + 8 * word < k) {
                        all = *reinterpret_cast<const uint4*>(from + 16 * word);
                    }
                } else {
                    unsigned bits[4] = {};
#pragma unroll
                    for (int j = 0; j < 8; ++j) {
                        if (first + 8 * word + j < k) {
                            bits[j / 2] |= unsigned(reinterpret_cast<const unsigned short*>(from)[8 * word + j]) << j % 2 * 16;
                        }
                    }
                    all = {bits[0], bits[1], bits[2], bits[3]};
                }
                of[column][word] = all;
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
        const unsigned own_x = x_shared + warp * PIECES * DEPTH * X_BYTES;
#pragma unroll
        for (int i = 0; i < PIECES * DEPTH; ++i) {
            next[i / DEPTH][i % DEPTH] = source.meta(blockIdx.x * FEATURES + pair, i * WARPS + warp);
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
                    next[piece][i] = source.meta((tile + stride) * FEATURES + pair, group);
                    Factors factors;
                    if constexpr (X_IN_REGISTERS) {
                        factors = kept[piece][i];
                    } else {
                        factors.read(own_x + (piece * DEPTH + i) * X_BYTES, lane);
                    }
                    add(total, factors, meta[i], slots + slot * STAGE + pair * PITCH + max(min(i * WARPS + warp, last), 0) * 64 + lane % 4 * 16);
                }
                if (piece == PIECES - 1) {
                    const unsigned to = sums + (buffer * WARPS + warp) * SUMS;
#pragma unroll
                    for (int column = 0; column < COLUMNS; ++column) {
#pragma unroll
                        for (int j = 0; j < 2; ++j) {
                            if (const int row = 8 * column + lane % 4 * 2 + j; row < ROWS) {
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
