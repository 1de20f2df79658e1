// CUDA C++ kernels of `histogram`: how often each of 256 values occurs among bytes.

typedef unsigned long long Count;
constexpr int BINS = 256;
#ifndef THREADS
#define THREADS 512
#endif
#ifndef VECTORS
#define VECTORS 2
#endif

// 1. Every byte is one atomic in L2, which executes those on the same counter one after the other.
extern "C" __global__ void __launch_bounds__(256) histogram_global(
    const unsigned char* __restrict__ x, Count* __restrict__ counts, long long n) {
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        atomicAdd(counts + x[i], 1ull);
    }
}

// 2. Counters of a block in shared memory; the grid strides through the bytes, one a thread and step.
extern "C" __global__ void __launch_bounds__(256) histogram_shared(
    const unsigned char* __restrict__ x, Count* __restrict__ counts, long long n) {
    __shared__ unsigned table[BINS];
    table[threadIdx.x] = 0;
    __syncthreads();
    const long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
        atomicAdd(table + x[i], 1u);
    }
    __syncthreads();
    if (table[threadIdx.x] > 0) {
        atomicAdd(counts + threadIdx.x, (Count)table[threadIdx.x]);
    }
}

// Bytes before the first whole 16-byte vector (a view may start anywhere) and after the last go to `one`, vectors to `four`.
template <typename One, typename Four>
__device__ __forceinline__ void over_bytes(const unsigned char* x, long long n, One one, Four four) {
    const long long before = (16 - reinterpret_cast<unsigned long long>(x) % 16) % 16;
    const long long head = before < n ? before : n;
    const long long count = (n - head) / 16;
    const uint4* vectors = reinterpret_cast<const uint4*>(x + head);
    const long long step = (long long)gridDim.x * THREADS;
    long long i = (long long)blockIdx.x * THREADS + threadIdx.x;
    for (; i + (VECTORS - 1) * step < count; i += VECTORS * step) {
        uint4 vector[VECTORS];
#pragma unroll
        for (int k = 0; k < VECTORS; ++k) {
            vector[k] = __ldcs(vectors + i + k * step);
        }
#pragma unroll
        for (int k = 0; k < VECTORS; ++k) {
            four(vector[k].x);
            four(vector[k].y);
            four(vector[k].z);
            four(vector[k].w);
        }
    }
    for (; i < count; i += step) {
        const uint4 vector = __ldcs(vectors + i);
        four(vector.x);
        four(vector.y);
        four(vector.z);
        four(vector.w);
    }
    if (blockIdx.x == 0) {
        const long long tail = head + count * 16 + threadIdx.x;
        if (threadIdx.x < head) {
            one(x[threadIdx.x]);
        }
        if (tail < n) {
            one(x[tail]);
        }
    }
}

// Add a block's counts to the total; the last block to finish moves the total to `out` and resets counters and ticket to 0.
__device__ __forceinline__ void finish(unsigned mine, Count* counts, unsigned* ticket, long long* out) {
    if (threadIdx.x < BINS && mine > 0) {
        atomicAdd(counts + threadIdx.x, (Count)mine);
    }
    __shared__ bool last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        last = atomicInc(ticket, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x < BINS) {
        __threadfence();
        out[threadIdx.x] = (long long)__ldcg(counts + threadIdx.x);
        counts[threadIdx.x] = 0;
    }
}

// 3. 16-byte loads and counters for each warp: warps no longer conflict, but lanes of one warp still do where their bytes are equal.
extern "C" __global__ void __launch_bounds__(THREADS) histogram_per_warp(
    const unsigned char* __restrict__ x, Count* __restrict__ counts, unsigned* __restrict__ ticket,
    long long* __restrict__ out, long long n) {
    constexpr int WARPS = THREADS / 32;
    __shared__ unsigned tables[WARPS][BINS];
    for (int i = threadIdx.x; i < WARPS * BINS; i += THREADS) {
        tables[0][i] = 0;
    }
    __syncthreads();
    unsigned* table = tables[threadIdx.x / 32];
    const auto one = [table](unsigned byte) { atomicAdd(table + byte, 1u); };
    over_bytes(x, n, one, [one](unsigned four) {
        one(four & 0xff);
        one(four >> 8 & 0xff);
        one(four >> 16 & 0xff);
        one(four >> 24);
    });
    __syncthreads();
    unsigned mine = 0;
    if (threadIdx.x < BINS) {
#pragma unroll
        for (int w = 0; w < WARPS; ++w) {
            mine += tables[w][threadIdx.x];
        }
    }
    finish(mine, counts, ticket, out);
}

// 4. Counters for each lane, shared by the warps of a block: counter b of lane l is in bank l for every b, so the 32
// atomics of a warp never conflict, whatever the distribution of the bytes.
extern "C" __global__ void __launch_bounds__(THREADS) histogram_per_lane(
    const unsigned char* __restrict__ x, Count* __restrict__ counts, unsigned* __restrict__ ticket,
    long long* __restrict__ out, long long n) {
    __shared__ __align__(16) unsigned table[BINS * 32];
    for (int i = threadIdx.x; i < BINS * 32 / 4; i += THREADS) {
        reinterpret_cast<uint4*>(table)[i] = make_uint4(0, 0, 0, 0);
    }
    __syncthreads();
    char* base = reinterpret_cast<char*>(table);
    const unsigned lane = threadIdx.x % 32 * 4;
    // 128 bytes a value: a shift and a mask make the address of each.
    const auto count = [base, lane](unsigned slot) {
        atomicAdd(reinterpret_cast<unsigned*>(base + ((slot & 0x7f80u) | lane)), 1u);
    };
    over_bytes(x, n, [count](unsigned byte) { count(byte << 7); }, [count](unsigned four) {
        count(four << 7);
        count(four >> 1);
        count(four >> 9);
        count(four >> 17);
    });
    __syncthreads();
    unsigned mine = 0;
    if (threadIdx.x < BINS) {
#pragma unroll
        for (int l = 0; l < 32; ++l) {
            // Each thread begins at another lane's counter: all banks at once.
            mine += table[threadIdx.x * 32 + (threadIdx.x + l) % 32];
        }
    }
    finish(mine, counts, ticket, out);
}
