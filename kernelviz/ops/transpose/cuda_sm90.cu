// `transpose` through the tensor memory accelerator (compute capability 9.0 on): y[n][m] = x[m][n], rows of both are whole 16-byte vectors.
#include "vec16.cuh"

using W = Vec16<ELEMENT>;
constexpr int WIDTH = W::WIDTH;
constexpr int SIDE = 8 * WIDTH;           // a box: SIDE rows of 128 bytes
constexpr int BOX_VECTORS = SIDE * 8;
constexpr int THREADS = BOXES_M * BOXES_N * 64;

__device__ __forceinline__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

// Transposes a WIDTH x WIDTH block in registers: 4 x 4 elements of 4 bytes by renaming registers, 8 x 8 of 2 bytes by one
// permutation a register.
__device__ __forceinline__ void transpose_block(const uint4 (&in)[WIDTH], uint4 (&out)[WIDTH]) {
    const unsigned(*a)[4] = reinterpret_cast<const unsigned(*)[4]>(in);
    unsigned(*b)[4] = reinterpret_cast<unsigned(*)[4]>(out);
#pragma unroll
    for (int j = 0; j < WIDTH; ++j) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            if constexpr (sizeof(ELEMENT) == 4) {
                b[j][i] = a[i][j];
            } else {
                b[j][i] = __byte_perm(a[2 * i][j / 2], a[2 * i + 1][j / 2], j % 2 ? 0x7632 : 0x5410);
            }
        }
    }
}

// 5. BOXES_M x BOXES_N boxes of 128 bytes a row. One thread issues the loads of all of them. 64 threads transpose each box, 8 x 8
// blocks of WIDTH x WIDTH elements along diagonals, so that both the vectors that 8 neighbouring threads read (one column each) and
// those that they write (one row each) lie in different banks without padding. The result is stored from the same memory.
extern "C" __global__ void __launch_bounds__(THREADS) transpose_tma(const char* maps, int tiles_n) {
    extern __shared__ __align__(128) uint4 boxes[][BOX_VECTORS];
    __shared__ alignas(8) unsigned long long boxes_loaded;
    const char* x_map = maps;
    const char* y_map = maps + 128;
    const int row0 = (int)(blockIdx.x / tiles_n) * (BOXES_M * SIDE);
    const int column0 = (int)(blockIdx.x % tiles_n) * (BOXES_N * SIDE);
    const unsigned barrier = shared_address(&boxes_loaded);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        // Tensor maps in global memory need this fence; maps that are kernel parameters do not. (Without it an H200 moved 3903
        // instead of 3833 GB/s in bf16, 3925 instead of 3719 in fp32.)
        asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(x_map) : "memory");
        asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(y_map) : "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier),
                     "n"(BOXES_M * BOXES_N * BOX_VECTORS * 16)
                     : "memory");
#pragma unroll
        for (int b = 0; b < BOXES_M * BOXES_N; ++b) {
            // Elements outside x are filled with zeros and count towards the mbarrier's bytes.
            asm volatile(
                "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
                    shared_address(boxes[b])),
                "l"(x_map), "r"(column0 + b % BOXES_N * SIDE), "r"(row0 + b / BOXES_N * SIDE), "r"(barrier)
                : "memory");
        }
    }
    __syncthreads();
    asm volatile(
        "{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], 0;\n@!done bra again;\n}" ::"r"(barrier)
        : "memory");
    uint4* box = boxes[threadIdx.x / 64];
    const int vec = threadIdx.x % 8;
    const int down = vec ^ (threadIdx.x / 8 % 8);
    uint4 in[WIDTH], out[WIDTH];
#pragma unroll
    for (int i = 0; i < WIDTH; ++i) {
        in[i] = box[(down * WIDTH + i) * 8 + vec];
    }
    transpose_block(in, out);
    __syncthreads();
#pragma unroll
    for (int j = 0; j < WIDTH; ++j) {
        box[(vec * WIDTH + j) * 8 + down] = out[j];
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
#pragma unroll
        for (int b = 0; b < BOXES_M * BOXES_N; ++b) {
            asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(y_map),
                         "r"(row0 + b / BOXES_N * SIDE), "r"(column0 + b % BOXES_N * SIDE), "r"(shared_address(boxes[b]))
                         : "memory");
        }
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        // The block must not end before TMA has read its shared memory.
        asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
    }
}
