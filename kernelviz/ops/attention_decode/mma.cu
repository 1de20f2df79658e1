// Attention of one query for each sequence over a KV cache, on tensor cores (sm_80 and later). Every warp copies keys and values of one key/value head to
// its own part of shared memory, several steps ahead (cp.async), and multiplies them by the query heads of the group: no warp waits for another one
// until the end of a row. Definitions:
//   ELEMENT  __nv_bfloat16 or __half
//   D        numbers of a head: 64, 128 or 256
//   GROUP    query heads of a key/value head, at most 16
//   HEADS    key/value heads of a block
//   WARPS    of a block, a multiple of HEADS; the warps of a head take turns with its tokens
//   STAGES   steps of a warp in shared memory
//   PAGE     tokens of a page of the cache, or 0 if the cache is contiguous
// A row is the tokens of HEADS heads of a sequence. Of hk / HEADS neighbouring blocks each has its own heads, and all have the same tokens, so that whole
// tokens are read from memory at about the same time. These groups of blocks have equal shares of the tiles of all sequences, so that a block begins and
// ends within a row at most once each. Of such a row it stores a part: sums, the maximum of scores, the sum of weights. The last block that stores a part
// of a row combines them.
// Products: scores Sᵀ (tokens × queries) = K Qᵀ, then sums Oᵀ (D × queries) = Vᵀ Pᵀ; with 8 queries no row or column of a product is wasted.
#include "softmax_fragments.cuh"

constexpr int THREADS = 32 * WARPS, PER_HEAD = WARPS / HEADS;
constexpr int TOKENS = D == 64 ? 32 : 16, PARTS = TOKENS / 16;  // of a step of a warp; 16 tokens are the rows of a product
constexpr int QUERIES = (GROUP + 7) / 8;                        // products side by side
constexpr int CHUNKS = D / 8, ROW = 2 * D, KEYS = TOKENS * ROW, STAGE = 2 * KEYS;  // 16-byte vectors and bytes of a token; bytes of a step
constexpr int DEPTH = D / 16, TILE = TOKENS * PER_HEAD;
constexpr int ROWS_OF_COPY = 32 / CHUNKS, COPIES = TOKENS / ROWS_OF_COPY;
constexpr bool TWO_SUMS = QUERIES * DEPTH < 32;               // else there are no registers for them
constexpr int FOURS = HEADS * GROUP * D / 4;  // vectors of four numbers of a row of the output
static_assert(WARPS % HEADS == 0 && GROUP <= 16 && STAGES >= 2 && (PAGE == 0 || PAGE == 16), "");
constexpr int FACTS = 64 * QUERIES;                             // bytes of a warp: maximum and total of each query
constexpr int PITCH = QUERIES == 1 ? D + 4 : D;                 // of the sums of a query: one more vector, so that a warp's stores have no conflicts
static_assert(8 * QUERIES * PITCH * 4 <= STAGE, "the sums of a warp take the place of a step");

// Where a vector of a token is in the keys or values of a step: eight neighbouring rows have their equal columns in different banks.
__device__ __forceinline__ unsigned place(int row, int chunk) { return row * ROW + (chunk ^ (row & 7)) * 16; }

struct Problem {
    const char *keys, *values;  // of the block's first head
    const int* table;
    int length, hk, tiles_of_row;
};

// Copies the tokens of one tile after another, of one warp.
struct Feed {
    const Problem& problem;
    int left, row, tile, turn, lane;  // `left`: tiles; `row`: the sequence
    int step = 0, now[PARTS] = {}, later[PARTS] = {};  // pages of 32 steps, a step a thread, and of the 32 after them

    __device__ __forceinline__ void find_pages(int (&pages)[PARTS], int ahead) const {
        const int count = (problem.length + 15) / 16, further = tile + ahead + lane;
        const int in_row = further % problem.tiles_of_row, of_row = row + further / problem.tiles_of_row;
#pragma unroll
        for (int part = 0; part < PARTS; ++part) {
            const int page = (in_row * PER_HEAD + turn) * PARTS + part;
            pages[part] = ahead + lane < left && page < count ? __ldg(problem.table + (long long)of_row * count + page) : 0;
        }
    }
    __device__ __forceinline__ void begin() {
        if constexpr (PAGE > 0) {
            find_pages(now, 0);
            find_pages(later, 32);
        }
    }
    __device__ __forceinline__ void copy(unsigned to) {
        if (left > 0) {
            const int first = lane / CHUNKS, chunk = lane % CHUNKS;
            const long long token_bytes = (long long)problem.hk * ROW;
            const int begin = (tile * PER_HEAD + turn) * TOKENS;
#pragma unroll
            for (int part = 0; part < PARTS; ++part) {
                const long long at = PAGE > 0 ? (long long)of_lane(now[part], step) * 16 : (long long)row * problem.length + begin + 16 * part;
                const long long offset = (at + first) * token_bytes + chunk * 16;
#pragma unroll
                for (int i = 0; i < COPIES / PARTS; ++i) {
                    const int number = 16 * part + first + i * ROWS_OF_COPY;
                    const bool inside = begin + number < problem.length;
                    const long long from = offset + i * ROWS_OF_COPY * token_bytes;
                    copy_async<16>(to + place(number, chunk), problem.keys + from, inside);
                    copy_async<16>(to + KEYS + place(number, chunk), problem.values + from, inside);
                }
            }
            --left;
            if (++tile == problem.tiles_of_row) {
                tile = 0;
                ++row;
            }
            if constexpr (PAGE > 0) {
                if (++step == 32) {
                    step = 0;
#pragma unroll
                    for (int part = 0; part < PARTS; ++part) {
                        now[part] = later[part];
                    }
                    find_pages(later, 32);
                }
            }
        }
        commit_copies();
    }
};

// The state of a warp within a row.
struct Sums {
    unsigned q[QUERIES][DEPTH][2];
    float o[QUERIES][DEPTH][4];
    float top[QUERIES][2], total[QUERIES][2];  // of the queries of the thread's columns, 2 (lane % 4) and the next; `total` of its tokens alone

    __device__ __forceinline__ void begin(const ELEMENT* queries, int lane) {
#pragma unroll
        for (int i = 0; i < QUERIES; ++i) {
            const int query = min(8 * i + lane / 4, GROUP - 1);  // those after the last one are not stored
            const unsigned* from = reinterpret_cast<const unsigned*>(queries + query * D) + lane % 4;
#pragma unroll
            for (int step = 0; step < DEPTH; ++step) {
                q[i][step][0] = __ldg(from + 8 * step);
                q[i][step][1] = __ldg(from + 8 * step + 4);
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    o[i][step][j] = 0.0f;
                }
            }
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                top[i][j] = __uint_as_float(0xff800000u);
                total[i][j] = 0.0f;
            }
        }
    }
    // `inside`: how many of the step's tokens exist, at least TOKENS if all.
    __device__ __forceinline__ void add(unsigned step_at, int inside, float scale, int lane) {
        float s[PARTS][QUERIES][4] = {}, odd[PARTS][QUERIES][4] = {};  // two sums, so that a product need not wait for the one before it
#pragma unroll
        for (int step = 0; step < DEPTH; ++step) {
#pragma unroll
            for (int part = 0; part < PARTS; ++part) {
                unsigned k[4];
                load_matrices(k, step_at + place(16 * part + lane % 16, 2 * step + lane / 16));
#pragma unroll
                for (int i = 0; i < QUERIES; ++i) {
                    TensorCore<ELEMENT>::multiply_add(TWO_SUMS && step % 2 == 1 ? odd[part][i] : s[part][i], k, q[i][step]);
                }
            }
        }
#pragma unroll
        for (int part = 0; part < PARTS; ++part) {
#pragma unroll
            for (int i = 0; i < QUERIES; ++i) {
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    s[part][i][j] += TWO_SUMS ? odd[part][i][j] : 0.0f;
                }
            }
        }
        if (inside < TOKENS) {
#pragma unroll
            for (int part = 0; part < PARTS; ++part) {
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    if (16 * part + lane / 4 + j / 2 * 8 >= inside) {
#pragma unroll
                        for (int i = 0; i < QUERIES; ++i) {
                            s[part][i][j] = __uint_as_float(0xff800000u);
                        }
                    }
                }
            }
        }
        unsigned p[PARTS][QUERIES][2];
#pragma unroll
        for (int i = 0; i < QUERIES; ++i) {
            float rescale[2];
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                float now = fmaxf(s[0][i][j], s[0][i][2 + j]);
#pragma unroll
                for (int part = 1; part < PARTS; ++part) {
                    now = fmaxf(now, fmaxf(s[part][i][j], s[part][i][2 + j]));
                }
#pragma unroll
                for (int mask = 4; mask < 32; mask *= 2) {
                    now = fmaxf(now, of_other_lane(now, mask));
                }
                now = fmaxf(now * scale, top[i][j]);
                // Without a token so far, -inf would be taken from -inf.
                const float base = now == __uint_as_float(0xff800000u) ? 0.0f : now;
                rescale[j] = power_of_two(top[i][j] - base);
                top[i][j] = now;
                total[i][j] *= rescale[j];
#pragma unroll
                for (int part = 0; part < PARTS; ++part) {
#pragma unroll
                    for (int half = 0; half < 4; half += 2) {
                        const float weight = power_of_two(s[part][i][half + j] * scale - base);
                        s[part][i][half + j] = weight;
                        total[i][j] += weight;
                    }
                }
            }
#pragma unroll
            for (int part = 0; part < PARTS; ++part) {
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    p[part][i][half] = transposed(TensorCore<ELEMENT>::pair(s[part][i][2 * half], s[part][i][2 * half + 1]));
                }
            }
#pragma unroll
            for (int step = 0; step < DEPTH; ++step) {
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    o[i][step][j] *= rescale[j % 2];
                }
            }
        }
#pragma unroll
        for (int step = 0; step < DEPTH; ++step) {
#pragma unroll
            for (int part = 0; part < PARTS; ++part) {
                unsigned v[4];
                load_matrices_transposed(v, step_at + KEYS + place(16 * part + lane / 16 * 8 + lane % 8, 2 * step + lane / 8 % 2));
#pragma unroll
                for (int i = 0; i < QUERIES; ++i) {
                    TensorCore<ELEMENT>::multiply_add(o[i][step], v, p[part][i]);
                }
            }
        }
    }
    // Stores sums (queries of D numbers) to shared memory, and the maximum and total of each query to `facts`.
    __device__ __forceinline__ void end(unsigned to, unsigned facts, int lane) {
#pragma unroll
        for (int i = 0; i < QUERIES; ++i) {
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                const int query = 8 * i + lane % 4 * 2 + j;
#pragma unroll
                for (int step = 0; step < DEPTH; ++step) {
#pragma unroll
                    for (int half = 0; half < 2; ++half) {
                        write_one(to + (query * PITCH + 16 * step + 8 * half + lane / 4) * 4, o[i][step][2 * half + j]);
                    }
                }
                float all = total[i][j];
#pragma unroll
                for (int mask = 4; mask < 32; mask *= 2) {
                    all += of_other_lane(all, mask);
                }
                if (lane < 4) {
                    write_one(facts + 8 * query, top[i][j]);
                    write_one(facts + 8 * query + 4, all);
                }
            }
        }
    }
};

struct Combined {
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    float total = 0.0f, top = __uint_as_float(0xff800000u);

    __device__ __forceinline__ void rescale_to(float now) {
        const float rescale = power_of_two(top - (now == __uint_as_float(0xff800000u) ? 0.0f : now));
        sum = make_float4(sum.x * rescale, sum.y * rescale, sum.z * rescale, sum.w * rescale);
        total *= rescale;
        top = now;
    }
    // After `rescale_to` a maximum that is no smaller.
    __device__ __forceinline__ void add(const float4& other, float other_total, float other_top) {
        const float weight = power_of_two(other_top - (top == __uint_as_float(0xff800000u) ? 0.0f : top));
        sum = make_float4(sum.x + weight * other.x, sum.y + weight * other.y, sum.z + weight * other.z, sum.w + weight * other.w);
        total += weight * other_total;
    }
    __device__ __forceinline__ void store(ELEMENT* to) const {
        const float share = 1.0f / total;
        uint2 bits;
        bits.x = TensorCore<ELEMENT>::pair(sum.x * share, sum.y * share);
        bits.y = TensorCore<ELEMENT>::pair(sum.z * share, sum.w * share);
        *reinterpret_cast<uint2*>(to) = bits;
    }
};

// Parts of rows in global memory.
struct Parts {
    float *sums, *tops, *totals;
    int groups, group;

    __device__ __forceinline__ long long number(int share, bool late) const { return 2 * ((long long)share * groups + group) + late; }
    __device__ __forceinline__ void store(int share, bool late, int i, const Combined& all) const {
        const long long part = number(share, late);
        reinterpret_cast<float4*>(sums)[part * FOURS + i] = all.sum;
        if (i % (D / 4) == 0) {
            tops[part * (HEADS * GROUP) + i / (D / 4)] = all.top;
            totals[part * (HEADS * GROUP) + i / (D / 4)] = all.total;
        }
    }
    __device__ __forceinline__ void load(int share, bool late, int i, float4& sum, float& top, float& total) const {
        const long long part = number(share, late);
        sum = __ldcg(reinterpret_cast<const float4*>(sums) + part * FOURS + i);
        top = __ldcg(tops + part * (HEADS * GROUP) + i / (D / 4));
        total = __ldcg(totals + part * (HEADS * GROUP) + i / (D / 4));
    }
};

// Shares of the tiles of all sequences; share i has tiles i · tiles / shares to (i + 1) · tiles / shares.
struct Shares {
    int tiles, shares, tiles_of_row;

    __device__ __forceinline__ int begin(int share) const { return int((long long)tiles * share / shares); }
    __device__ __forceinline__ int of_tile(int tile) const { return int(((tile + 1) * (long long)shares - 1) / tiles); }
    __device__ __forceinline__ int first_of(int row) const { return of_tile(row * tiles_of_row); }
    __device__ __forceinline__ int last_of(int row) const { return of_tile(row * tiles_of_row + tiles_of_row - 1); }
};

// A row of the output, from the parts of all shares that it is in.
__device__ __forceinline__ void combine(ELEMENT* out_of_row, const Parts& parts, const Shares& shares, int row) {
    constexpr int AT_ONCE = 16;
    const int from = shares.first_of(row), to = shares.last_of(row);
    const bool late = shares.begin(from) < row * shares.tiles_of_row;  // the first share began with an earlier row
#pragma unroll 1
    for (int i = threadIdx.x; i < FOURS; i += THREADS) {
        Combined all;
#pragma unroll 1
        for (int other = from; other <= to; other += AT_ONCE) {
            float4 sums_of[AT_ONCE];
            float tops_of[AT_ONCE], totals_of[AT_ONCE];
#pragma unroll
            for (int j = 0; j < AT_ONCE; ++j) {
                // The last one is loaded again for those after it, which count for nothing.
                const int share = min(other + j, to);
                parts.load(share, share == from && late, i, sums_of[j], tops_of[j], totals_of[j]);
                tops_of[j] = other + j <= to ? tops_of[j] : __uint_as_float(0xff800000u);
            }
            float top = all.top;
#pragma unroll
            for (int j = 0; j < AT_ONCE; ++j) {
                top = fmaxf(top, tops_of[j]);
            }
            all.rescale_to(top);
#pragma unroll
            for (int j = 0; j < AT_ONCE; ++j) {
                all.add(sums_of[j], totals_of[j], tops_of[j]);
            }
        }
        all.store(out_of_row + i * 4);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) attention_decode(
    const ELEMENT* __restrict__ q, const char* __restrict__ keys, const char* __restrict__ values, const int* __restrict__ table,
    ELEMENT* __restrict__ out, float* parts, float* part_tops, float* part_totals, unsigned* arrived, int sequences, int length, int hk,
    int shares, float scale) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, head_in_block = warp / PER_HEAD, groups = hk / HEADS;
    const int share = blockIdx.x / groups, group = blockIdx.x % groups;
    const long long head_at = (long long)(group * HEADS + head_in_block) * ROW;
    const unsigned memory_of_block = shared_memory(), own = memory_of_block + warp * (STAGES * STAGE);
    const Problem problem{keys + head_at, values + head_at, table, length, hk, (length + TILE - 1) / TILE};
    const Shares all_shares{sequences * problem.tiles_of_row, shares, problem.tiles_of_row};
    const int first = all_shares.begin(share), last = all_shares.begin(share + 1);
    const Parts all_parts{parts, part_tops, part_totals, groups, group};
    const unsigned facts = memory_of_block + WARPS * STAGES * STAGE;

    int row = first / problem.tiles_of_row, tile = first % problem.tiles_of_row;
    Feed feed{problem, last - first, row, tile, warp % PER_HEAD, lane};
    feed.begin();
#pragma unroll 1
    for (int stage = 0; stage < STAGES - 1; ++stage) {
        feed.copy(own + stage * STAGE);
    }
    int slot = 0, left = last - first;
    while (left > 0) {
        const int begin = tile, end = min(problem.tiles_of_row, begin + left);
        const long long heads_before = ((long long)row * groups + group) * HEADS;
        Sums sums;
        sums.begin(q + (heads_before + head_in_block) * (GROUP * D), lane);
        unsigned used = own;
#pragma unroll 1
        for (; tile < end; ++tile) {
            wait_for_copies<STAGES - 2>();
            __syncwarp();  // the copies of all threads have arrived, and all have read the step before
            feed.copy(own + (slot == 0 ? STAGES - 1 : slot - 1) * STAGE);
            used = own + slot * STAGE;
            sums.add(used, length - (tile * PER_HEAD + feed.turn) * TOKENS, scale, lane);
            slot = slot + 1 == STAGES ? 0 : slot + 1;
        }
        left -= end - begin;
        __syncwarp();
        sums.end(used, facts + warp * FACTS, lane);
        __syncthreads();

        const bool whole = end - begin == problem.tiles_of_row;
        const bool late = row * problem.tiles_of_row > first;
        const unsigned in_stage = used - own;
        ELEMENT* out_of_row = out + heads_before * (GROUP * D);
#pragma unroll 1
        for (int i = threadIdx.x; i < FOURS; i += THREADS) {
            const int query = i / (D / 4), first_warp = query / GROUP * PER_HEAD;
            Combined all;
            const unsigned own_facts = facts + first_warp * FACTS + 8 * (query % GROUP);
            float top = read_one(own_facts);
#pragma unroll
            for (int other = 1; other < PER_HEAD; ++other) {
                top = fmaxf(top, read_one(own_facts + other * FACTS));
            }
            all.rescale_to(top);
#pragma unroll
            for (int other = 0; other < PER_HEAD; ++other) {
                const unsigned from = memory_of_block + (first_warp + other) * (STAGES * STAGE) + in_stage;
                const unsigned other_facts = own_facts + other * FACTS;
                all.add(read_four(from + (query % GROUP * PITCH + i % (D / 4) * 4) * 4), read_one(other_facts + 4), read_one(other_facts));
            }
            if (whole) {
                all.store(out_of_row + i * 4);
            } else {
                all_parts.store(share, late, i, all);
            }
        }
        if (!whole && is_last_block(arrived + row * groups + group, all_shares.last_of(row) - all_shares.first_of(row) + 1)) {
            combine(out_of_row, all_parts, all_shares, row);
        }
        __syncthreads();  // the sums of warps were read; copies may take their place
        tile = end == problem.tiles_of_row ? 0 : end;
        row += end == problem.tiles_of_row;
    }
}
