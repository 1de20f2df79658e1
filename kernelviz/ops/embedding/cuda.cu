// CUDA C++ kernels that copy the rows that ids name. WORD is the widest of unsigned short, unsigned, uint2 and uint4 that every row
// starts on and is a whole number of; nothing is converted, so bits stay as they are. `words`: words a row.

// 1. and 2. One block a row.
extern "C" __global__ void __launch_bounds__(256) gather_row(
    const WORD* __restrict__ x, const long long* __restrict__ ids, WORD* __restrict__ out, int words) {
    const WORD* from = x + ids[blockIdx.x] * words;
    WORD* to = out + (long long)blockIdx.x * words;
    for (int i = threadIdx.x; i < words; i += blockDim.x) {
        to[i] = from[i];
    }
}

constexpr int THREADS = 256, PIECE = THREADS * UNROLL;

// The words of piece `piece` of the output that a thread copies: which row each lies in, and where in it.
struct Places {
    long long row[UNROLL];
    int word[UNROLL];

    __device__ __forceinline__ Places(long long piece, int words) {
        // One division of INDEX a piece (64-bit ones take about 100 instructions); what is left is small.
        const INDEX start = (INDEX)piece * PIECE;
        const INDEX first = start / (INDEX)words;
        const unsigned behind = (unsigned)(start - first * (INDEX)words) + threadIdx.x;
#pragma unroll
        for (int k = 0; k < UNROLL; ++k) {
            const unsigned at = behind + k * THREADS;
            row[k] = (long long)first + at / (unsigned)words;
            word[k] = (int)(at % (unsigned)words);
        }
    }
};

// 3. Pieces of UNROLL x 256 words of the output, whatever rows they belong to: four ids, then four words, under way at once.
// No streaming hints: with them the H200 moved 4032 instead of the 4183 GB/s of plain stores (rows of 8 KiB).
extern "C" __global__ void __launch_bounds__(THREADS) gather_flat(
    const WORD* __restrict__ x, const long long* __restrict__ ids, WORD* __restrict__ out, long long t, int words) {
    const Places places(blockIdx.x, words);
    long long id[UNROLL];
    WORD found[UNROLL];
#pragma unroll
    for (int k = 0; k < UNROLL; ++k) {
        if (places.row[k] < t) {
            id[k] = __ldg(ids + places.row[k]);
        }
    }
#pragma unroll
    for (int k = 0; k < UNROLL; ++k) {
        if (places.row[k] < t) {
            found[k] = __ldg(x + id[k] * words + places.word[k]);
        }
    }
#pragma unroll
    for (int k = 0; k < UNROLL; ++k) {
        if (places.row[k] < t) {
            out[places.row[k] * words + places.word[k]] = found[k];
        }
    }
}
