// `copy` by Hopper's bulk copies: the copy engine of each SM (TMA) moves bytes between global and shared memory, and one thread
// issues the copies. No element passes through a register.

__device__ __forceinline__ unsigned shared_address(const void* p) {
    return (unsigned)__cvta_generic_to_shared(p);
}

// A chunk of 2 KiB a block, 32 of which an SM holds: 64 KiB in flight. On an H200 2^28 floats take 501 us, 507 in chunks of
// 4 KiB, 633 of 1 KiB (an SM holds no more than 32 blocks), and 533-579 by persistent blocks that walk through a ring of stages.
constexpr unsigned CHUNK = 2048;

// `bytes` is a whole number of 16-byte vectors; the `tail` bytes after them are copied byte by byte.
extern "C" __global__ void __launch_bounds__(32) copy_bulk(
    const unsigned char* __restrict__ x, unsigned char* __restrict__ out, long long bytes, int tail) {
    __shared__ __align__(128) unsigned char chunk[CHUNK];
    __shared__ unsigned long long full;
    if (blockIdx.x == 0 && (int)threadIdx.x < tail) {
        out[bytes + threadIdx.x] = x[bytes + threadIdx.x];
    }
    const long long first = (long long)blockIdx.x * CHUNK;
    if (threadIdx.x != 0 || first >= bytes) {
        return;
    }
    const unsigned size = bytes - first < CHUNK ? (unsigned)(bytes - first) : CHUNK;
    const unsigned barrier = shared_address(&full), chunk_address = shared_address(chunk);
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier) : "memory");
    // The copy engine must see the initialised mbarrier.
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(size) : "memory");
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(chunk_address),
        "l"(x + first), "r"(size), "r"(barrier)
        : "memory");
    asm volatile(
        "{\n"
        ".reg .pred done;\n"
        "again:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], 0;\n"
        "@!done bra again;\n"
        "}\n" ::"r"(barrier)
        : "memory");
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(out + first), "r"(chunk_address), "r"(size)
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    // The store must finish before the block ends, since its shared memory is then reused.
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
