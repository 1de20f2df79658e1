// CUDA C++ kernels that copy the rows that ids name. VECTOR is the widest of unsigned short, unsigned, uint2 and uint4 that every row
// starts on and is a whole number of; nothing is converted, so bits stay as they are. `vectors`: vectors a row.

// 1. and 2. One block a row.
extern "C" __global__ void __launch_bounds__(256) gather_row(
    const VECTOR* __restrict__ x, const long long* __restrict__ ids, VECTOR* __restrict__ out, int vectors) {
    const VECTOR* from = x + ids[blockIdx.x] * vectors;
    VECTOR* to = out + (long long)blockIdx.x * vectors;
    for (int i = threadIdx.x; i < vectors; i += blockDim.x) {
        to[i] = from[i];
    }
}

constexpr int THREADS = 256, PIECE = THREADS * UNROLL;

// The vectors of piece `piece` of the output that a thread copies: the row of each, and its position in the row.
struct Positions {
    long long row[UNROLL];
    int vector[UNROLL];

    __device__ __forceinline__ Positions(long long piece, int vectors) {
        // One division of INDEX a piece (64-bit ones take about 100 instructions); the other divisions are of small numbers.
        const INDEX start = (INDEX)piece * PIECE;
        const INDEX first = start / (INDEX)vectors;
        const unsigned offset = (unsigned)(start - first * (INDEX)vectors) + threadIdx.x;
#pragma unroll
        for (int k = 0; k < UNROLL; ++k) {
            const unsigned at = offset + k * THREADS;
            row[k] = (long long)first + at / (unsigned)vectors;
            vector[k] = (int)(at % (unsigned)vectors);
        }
    }
};

// 3. Pieces of UNROLL x 256 vectors of the output, whatever rows they belong to: four ids and then four vectors are in flight at once.
// No streaming hints: with them the H200 moved 4032 instead of the 4183 GB/s of plain stores (rows of 8 KiB).
extern "C" __global__ void __launch_bounds__(THREADS) gather_flat(
    const VECTOR* __restrict__ x, const long long* __restrict__ ids, VECTOR* __restrict__ out, long long t, int vectors) {
    const Positions positions(blockIdx.x, vectors);
    long long id[UNROLL];
    VECTOR loaded[UNROLL];
#pragma unroll
    for (int k = 0; k < UNROLL; ++k) {
        if (positions.row[k] < t) {
            id[k] = __ldg(ids + positions.row[k]);
        }
    }
#pragma unroll
    for (int k = 0; k < UNROLL; ++k) {
        if (positions.row[k] < t) {
            loaded[k] = __ldg(x + id[k] * vectors + positions.vector[k]);
        }
    }
#pragma unroll
    for (int k = 0; k < UNROLL; ++k) {
        if (positions.row[k] < t) {
            out[positions.row[k] * vectors + positions.vector[k]] = loaded[k];
        }
    }
}
