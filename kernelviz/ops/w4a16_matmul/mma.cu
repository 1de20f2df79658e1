// y (m, n) = x (m, k) · weights of 4 bits (layout.py), of at most 64 rows, on tensor cores: 16 output features by 8 rows of x a product, so few
// rows of x waste tensor cores, which are idle anyway, but no memory traffic. Definitions:
//   ELEMENT    __nv_bfloat16 or __half
//   ROWS       m
//   TILES      16 output features each, of a warp
//   DEEP       warps that share the groups of K of the same features; their sums are added in shared memory
//   ACROSS     such sets of warps in a block, with features of their own
//   STAGES     of the pipeline of each warp, one group of its features each
//   BLOCKS     of a multiprocessor
//   ALIGNED    1 if n is a multiple of 8, so that cp.async can copy scales and zero points; else they are loaded one by one
//   SHUFFLED   1 if the weights were reordered, so that a warp reads 1024 neighbouring bytes; else 64 of each feature
//   COPY_X     bytes of one access to x: 16, or 2 if its rows do not begin at multiples of 16
// A block computes the same part of K of one tile of features after the other. Its warps only wait for each other to add their sums.
#include "packed.cuh"
#include "four_bit.cuh"

constexpr int GROUP = 128, WARPS = DEEP * ACROSS, THREADS = 32 * WARPS, FEATURES = 16 * TILES * ACROSS;
constexpr int COLUMNS = (ROWS + 7) / 8;  // products side by side, each of 8 rows of x
// Of each stage: the weights, 32 bytes of scales and 8 of zero points for each tile, and room for what lanes without such a word copy.
constexpr int META_WORDS = 10 * TILES, META_COPIES = (META_WORDS + 31) / 32, STAGE = 1024 * TILES + 128 * META_COPIES;
constexpr int SUM_PITCH = 16 * TILES + 4;  // numbers: no bank conflicts
constexpr int SUMS = 4 * SUM_PITCH * ROWS;  // bytes of a warp
// With few rows the sum of each group is multiplied by the scale in fp32. With many, that is more work than multiplying the weights in 16 bits.
constexpr bool SCALE_SUMS = COLUMNS <= 2;
constexpr int SUMS_OF_X = SCALE_SUMS ? 64 * COLUMNS : 0;  // bytes of a group
constexpr int X_LOADS = COPY_X == 16 ? 4 : 1;  // of 16 bytes of x, that a thread has on their way
static_assert(STAGES >= 2 && ROWS <= 64, "a stage in flight while another is used");

using Weights = FourBit<ELEMENT>;

// What a warp copies ahead: groups DEEP apart of one tile of features, then of the next tile of the block.
struct Feed {
    const char *weights, *scales, *zeros;
    int n, groups, first, count, deep;  // groups of K: of all, before this part, of this part, of the first of this warp
    int across, lane, tiles, stride;
    int tile, group;
    const char* from;                 // 16 bytes of the first of eight features
    unsigned offsets[2 * TILES];      // of the others
    const char* meta[META_COPIES];    // scales or zero points of this lane
    unsigned meta_step[META_COPIES];  // to those of the next group

    __device__ __forceinline__ int feature() const { return (tile * ACROSS + across) * 16 * TILES; }
    // Addresses for the first group of a tile.
    __device__ __forceinline__ void begin_tile() {
        const int begin = first + group;
#pragma unroll
        for (int i = 0; i < 2 * TILES; ++i) {
            if constexpr (SHUFFLED) {
                const int last = (n - 1) / 16 - feature() / 16;
                offsets[i] = unsigned(min(i / 2, max(last, 0)) * groups) * 1024 + i % 2 * 512;
            } else {
                // Features after the last one are replaced by it: what is computed of them is not stored.
                const int row = min(feature() + lane / 4, n - 1);
                offsets[i] = unsigned((min(feature() + lane / 4 + 8 * i, n - 1) - row) * groups) * 64;
            }
        }
        if constexpr (SHUFFLED) {
            from = weights + ((long long)min(feature() / 16, (n - 1) / 16) * groups + begin) * 1024 + 16 * lane;
        } else {
            from = weights + ((long long)min(feature() + lane / 4, n - 1) * groups + begin) * 64 + 16 * (lane % 4);
        }
        if constexpr (ALIGNED) {
#pragma unroll
            for (int i = 0; i < META_COPIES; ++i) {
                const int word = 32 * i + lane, number = first_feature(word);
                const bool is_zero = word >= 8 * TILES, inside = word < META_WORDS && number < n;
                meta_step[i] = !inside ? 0 : is_zero ? n / 2 : 2 * n;
                meta[i] = !inside ? scales : (is_zero ? zeros + number / 2 : scales + 2ll * number) + (long long)begin * meta_step[i];
            }
        }
    }
    // Words 0 to 8 TILES - 1 are two scales each; the next ones are the zero points of 8 features each.
    __device__ __forceinline__ int first_feature(int word) const {
        return feature() + (word >= 8 * TILES ? 8 * (word - 8 * TILES) : 2 * word);
    }
    // Begins the copies of one stage; without any, if there is nothing left. Always ends a group of copies, so that they can be counted.
    __device__ __forceinline__ void copy(unsigned to) {
        if (tile < tiles) {
#pragma unroll
            for (int i = 0; i < 2 * TILES; ++i) {
                copy_async<16>(to + 512 * i + 16 * lane, from + offsets[i], true);
            }
#pragma unroll
            for (int i = 0; i < META_COPIES; ++i) {
                const unsigned slot = to + 1024 * TILES + 4 * (32 * i + lane);
                if constexpr (ALIGNED) {
                    copy_async<4>(slot, meta[i], META_WORDS % 32 == 0 || meta_step[i] > 0);
                    meta[i] += (unsigned long long)meta_step[i] * DEEP;
                } else {
                    store_shared(slot, meta_word(32 * i + lane));
                }
            }
            group += DEEP;
            from += DEEP * (SHUFFLED ? 1024 : 64);
            if (group >= count) {
                group = deep;
                tile += stride;
                begin_tile();
            }
        }
        commit_copies();
    }
    __device__ __forceinline__ unsigned meta_word(int word) const {
        const int number = first_feature(word);
        const long long row = first + group;
        unsigned bits = 0;
        if (word >= 8 * TILES) {
            const unsigned char* zero = reinterpret_cast<const unsigned char*>(zeros) + row * ((n + 1) / 2) + number / 2;
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                bits |= word < META_WORDS && number + 2 * i < n ? unsigned(zero[i]) << 8 * i : 0u;
            }
        } else {
            const unsigned short* scale = reinterpret_cast<const unsigned short*>(scales) + row * n + number;
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                bits |= number + i < n ? unsigned(scale[i]) << 16 * i : 0u;
            }
        }
        return bits;
    }
};

// Sums of products. `x`: address of x of the stage's group in shared memory; `sums_of_x`: of its sums.
struct Sums {
    float of[TILES][COLUMNS][4];

    __device__ __forceinline__ void add(unsigned stage, unsigned x, unsigned sums_of_x, int lane) {
        uint4 weights[TILES][2];
        unsigned scales[TILES][2], zero_points[TILES][2];  // a scale is the bits of one number
#pragma unroll
        for (int i = 0; i < TILES; ++i) {
            uint2 zeros;
            load_shared(zeros, stage + 1024 * TILES + 32 * TILES + 8 * i);
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                load_shared(weights[i][half], stage + 1024 * i + 512 * half + 16 * lane);
                unsigned short scale;
                load_shared(scale, stage + 1024 * TILES + 32 * i + 16 * half + lane / 4 * 2);
                scales[i][half] = scale;
                zero_points[i][half] = (half ? zeros.y : zeros.x) >> (lane & 28) & 15;
            }
        }
        // The sums of the group with x of even and of odd number; the first begin with what they contain too much because of MAGIC.
        float even[TILES][COLUMNS][4], odd[TILES][COLUMNS][4] = {}, x_sums[COLUMNS][2];
        if constexpr (SCALE_SUMS) {
#pragma unroll
            for (int column = 0; column < COLUMNS; ++column) {
                uint4 bits;
                load_shared(bits, sums_of_x + 64 * column + 16 * (lane % 4));
                x_sums[column][0] = __uint_as_float(bits.x);
                x_sums[column][1] = __uint_as_float(bits.z);
#pragma unroll
                for (int i = 0; i < TILES; ++i) {
                    even[i][column][0] = even[i][column][2] = __uint_as_float(bits.y);
                    even[i][column][1] = even[i][column][3] = __uint_as_float(bits.w);
                }
            }
        }
#pragma unroll
        for (int word = 0; word < 4; ++word) {
            unsigned a[TILES][2][4];
#pragma unroll
            for (int i = 0; i < TILES; ++i) {
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    const uint4& all = weights[i][half];
                    Weights::pairs(a[i][half], word == 0 ? all.x : word == 1 ? all.y : word == 2 ? all.z : all.w);
                    if constexpr (!SCALE_SUMS) {
                        Weights::subtract(a[i][half], zero_points[i][half]);
#pragma unroll
                        for (int pair = 0; pair < 4; ++pair) {
                            a[i][half][pair] = multiply_pairs<ELEMENT>(a[i][half][pair], scales[i][half] * 0x10001u);
                        }
                    }
                }
            }
#pragma unroll
            for (int column = 0; column < COLUMNS; ++column) {
                const int row = min(8 * column + lane / 4, ROWS - 1);  // columns after the last one are not stored
                uint4 b;
                load_shared(b, x + (word * ROWS + row) * 64 + lane % 4 * 16);
#pragma unroll
                for (int i = 0; i < TILES; ++i) {
                    TensorCore<ELEMENT>::multiply_add(SCALE_SUMS ? even[i][column] : of[i][column],
                                                      {a[i][0][0], a[i][1][0], a[i][0][2], a[i][1][2]}, {b.x, b.y});
                    TensorCore<ELEMENT>::multiply_add(SCALE_SUMS ? odd[i][column] : of[i][column],
                                                      {a[i][0][1], a[i][1][1], a[i][0][3], a[i][1][3]}, {b.z, b.w});
                }
            }
        }
        if constexpr (SCALE_SUMS) {
#pragma unroll
            for (int i = 0; i < TILES; ++i) {
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    float scale, unused;
                    Halves<ELEMENT>::split(scales[i][half], scale, unused);
                    const float zero = float(int(zero_points[i][half]));
#pragma unroll
                    for (int column = 0; column < COLUMNS; ++column) {
#pragma unroll
                        for (int j = 0; j < 2; ++j) {
                            const float both = even[i][column][2 * half + j] + Weights::SHARE_OF_ODD * odd[i][column][2 * half + j];
                            of[i][column][2 * half + j] += scale * (both - zero * x_sums[column][j]);
                        }
                    }
                }
            }
        }
    }
};

// x of `count` groups from group `first` on, into shared memory: 16 bytes are 8 neighbouring numbers of a row in the order 0 4 2 6 1 5 3 7, which is
// that of the products; zeros after the last column. In a group, the first eight of each 32 numbers come first. To `to_sums`, for each group
// and row: the sum of x, and minus the sum of x times what `pairs` adds to a weight.
__device__ __forceinline__ void store_x(const char* x, long long k, int first, int count, unsigned to, unsigned to_sums) {
    const int pieces = 16 * count, all = ROWS * pieces, lane = threadIdx.x % 32;
    // Several loads at a time: one after the other would cost a latency each, 16 of them for a block of 8 rows of 4096 numbers.
#pragma unroll 1
    for (int begin = threadIdx.x - lane; begin < all; begin += X_LOADS * THREADS) {
        uint4 loaded[X_LOADS];
#pragma unroll
        for (int load = 0; load < X_LOADS; ++load) {
            const int number = begin + load * THREADS + lane, row = number / pieces, piece = number % pieces;
            const long long column = (long long)first * GROUP + piece * 8;
            const char* from = x + (row * k + column) * 2;
            loaded[load] = {};
            if constexpr (COPY_X == 16) {
                if (number < all && column < k) {
                    loaded[load] = *reinterpret_cast<const uint4*>(from);
                }
            } else {
                unsigned bits[4] = {};
#pragma unroll
                for (int j = 0; j < 8; ++j) {
                    if (number < all && column + j < k) {
                        bits[j / 2] |= unsigned(reinterpret_cast<const unsigned short*>(from)[j]) << j % 2 * 16;
                    }
                }
                loaded[load] = {bits[0], bits[1], bits[2], bits[3]};
            }
        }
#pragma unroll
        for (int load = 0; load < X_LOADS; ++load) {
            const int number = begin + load * THREADS + lane, row = number / pieces, piece = number % pieces;
            const bool inside = number < all;
            const unsigned bits[4] = {loaded[load].x, loaded[load].y, loaded[load].z, loaded[load].w};
            if (inside) {
                write_shared(to + ((piece / 16 * 4 + piece % 4) * ROWS + row) * 64 + piece % 16 / 4 * 16,
                             uint4{(bits[0] & 0xffffu) | bits[2] << 16, (bits[1] & 0xffffu) | bits[3] << 16, bits[0] >> 16 | (bits[2] & 0xffff0000u),
                                   bits[1] >> 16 | (bits[3] & 0xffff0000u)});
            }
            if constexpr (SCALE_SUMS) {
                float even = 0.0f, odd = 0.0f;
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    float low, high;
                    Halves<ELEMENT>::split(bits[j], low, high);
                    even += low;
                    odd += high;
                }
#pragma unroll
                for (int mask = 1; mask < 16; mask *= 2) {
                    even = sum_of_two_lanes(even, mask);
                    odd = sum_of_two_lanes(odd, mask);
                }
                if (inside && piece % 16 == 0) {
                    const unsigned of_group = to_sums + piece / 16 * SUMS_OF_X + row * 8;
                    write_shared(of_group, even + odd);
                    write_shared(of_group + 4, -(Weights::EVEN * even + Weights::ODD * odd));
                }
            }
        }
    }
    if constexpr (SCALE_SUMS) {
#pragma unroll 1
        for (int i = threadIdx.x; i < count * (8 * COLUMNS - ROWS); i += THREADS) {
            const unsigned of_row = to_sums + i / (8 * COLUMNS - ROWS) * SUMS_OF_X + (ROWS + i % (8 * COLUMNS - ROWS)) * 8;
            write_shared(of_row, 0.0f);
            write_shared(of_row + 4, 0.0f);
        }
    }
}

// `workspace` and `arrived` are used if there are several parts of K: room for the sums of all parts of all tiles, and for each tile a counter that
// is zero before and after the launch. `part_groups`: groups of a part. The number of blocks is a multiple of `parts`.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) w4a16_mma(
    const char* __restrict__ x, const char* __restrict__ weights, const char* __restrict__ scales, const char* __restrict__ zeros,
    ELEMENT* __restrict__ y, float* workspace, unsigned* arrived, int n, int k, int part_groups, int parts) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, deep = warp % DEEP, across = warp / DEEP;
    const int groups = (k + GROUP - 1) / GROUP, part = blockIdx.x % parts, first = part * part_groups, count = min(part_groups, groups - first);
    const int tiles = (n + FEATURES - 1) / FEATURES, stride = gridDim.x / parts, first_tile = blockIdx.x / parts;
    const unsigned x_shared = shared_memory(), x_sums = x_shared + part_groups * (ROWS * GROUP * 2);
    const unsigned all_slots = x_sums + (part_groups * SUMS_OF_X + 127) / 128 * 128;
    const unsigned slots = all_slots + warp * (STAGES * STAGE), all_sums = all_slots + WARPS * STAGES * STAGE;

    Feed feed{weights, scales, zeros, n, groups, first, count, deep, across, lane, deep < count ? tiles : 0, stride, first_tile, deep};
    feed.begin_tile();
#pragma unroll 1
    for (int i = 0; i < STAGES - 1; ++i) {
        feed.copy(slots + i * STAGE);
    }
    store_x(x, k, first, count, x_shared, x_sums);
    __syncthreads();

    unsigned slot = slots, last_slot = slots + (STAGES - 1) * STAGE, buffer = all_sums;
#pragma unroll 1
    for (int tile = first_tile; tile < tiles; tile += stride) {
        Sums sums = {};
#pragma unroll 1
        for (int group = deep; group < count; group += DEEP) {
            wait_for_copies<STAGES - 2>();
            __syncwarp();
            feed.copy(last_slot);
            sums.add(slot, x_shared + group * (ROWS * GROUP * 2), x_sums + group * SUMS_OF_X, lane);
            last_slot = slot;
            slot = slot + STAGE == slots + STAGES * STAGE ? slots : slot + STAGE;
        }

        float* of_tile = workspace + ((long long)tile * parts + part) * (ROWS * FEATURES);
        const auto store = [&](int row, int feature, float sum) {
            const int number = tile * FEATURES + feature;
            if (parts > 1) {
                of_tile[row * FEATURES + feature] = sum;
            } else if (number < n) {
                y[(long long)row * n + number] = ELEMENT(sum);
            }
        };
#pragma unroll
        for (int i = 0; i < TILES; ++i) {
#pragma unroll
            for (int column = 0; column < COLUMNS; ++column) {
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    const int row = 8 * column + lane % 4 * 2 + j % 2, feature = 16 * i + lane / 4 + j / 2 * 8;
                    if (row < ROWS) {
                        if constexpr (DEEP == 1) {
                            store(row, across * 16 * TILES + feature, sums.of[i][column][j]);
                        } else {
                            write_shared(buffer + warp * SUMS + (row * SUM_PITCH + feature) * 4, sums.of[i][column][j]);
                        }
                    }
                }
            }
        }
        if constexpr (DEEP > 1) {
            __syncthreads();
#pragma unroll 1
            for (int i = threadIdx.x; i < ROWS * FEATURES; i += THREADS) {
                const int row = i / FEATURES, feature = i % FEATURES, set = feature / (16 * TILES);
                const unsigned from = buffer + set * DEEP * SUMS + (row * SUM_PITCH + feature % (16 * TILES)) * 4;
                float sum = 0.0f;
#pragma unroll
                for (int one = 0; one < DEEP; ++one) {
                    sum += read_shared(from + one * SUMS);
                }
                store(row, feature, sum);
            }
            // Two buffers: a warp that begins the next sums does not wait for those that still read these.
            buffer = buffer == all_sums ? all_sums + WARPS * SUMS : all_sums;
        }
        if (parts > 1 && is_last_to_arrive(arrived + tile, parts)) {
#pragma unroll 1
            for (int i = threadIdx.x; i < ROWS * FEATURES; i += THREADS) {
                if (const int number = tile * FEATURES + i % FEATURES; number < n) {
                    y[(long long)(i / FEATURES) * n + number] =
                        ELEMENT(sum_of_parts(workspace + (long long)tile * parts * (ROWS * FEATURES) + i, ROWS * FEATURES, parts));
                }
            }
        }
    }
}
