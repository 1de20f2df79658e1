// The instrument's own kernels. Their names delimit the iterations in a trace, so no other kernel may have these names.
// Each may store its SM's cycle counter: the cycles between two kernels divided by the traced time are the SM clock.

__device__ __forceinline__ unsigned sm_id() {
    unsigned id;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(id));
    return id;
}

__device__ __forceinline__ void store_clock(long long* cycles) {
    if (cycles != nullptr && threadIdx.x == 0) {
        cycles[sm_id()] = clock64();
    }
}

// Reads `count` 16-byte vectors and writes nothing: clean lines cost the next kernel no write-back.
// `guard` never equals the sum of the buffer, so the loads cannot be removed and the store never happens.
extern "C" __global__ void __launch_bounds__(512) kernelviz_flush_l2(
    const uint4* __restrict__ vectors, long long count, unsigned guard, unsigned* sink, long long* cycles) {
    unsigned sum = 0;
    const long long step = (long long)gridDim.x * blockDim.x;
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    for (; i + 3 * step < count; i += 4 * step) {
        const uint4 a = vectors[i], b = vectors[i + step], c = vectors[i + 2 * step], d = vectors[i + 3 * step];
        sum |= a.x | b.y | c.z | d.w;
    }
    for (; i < count; i += step) {
        sum |= vectors[i].x;
    }
    if (sum == guard) {
        *sink = sum;
    }
    __syncthreads();
    store_clock(cycles);
}

// Reads a buffer with the L2 priority evict_last. Its lines replace lines of other data that have this priority, which reads with
// the usual priority do not always evict. Before sm_80, loads have no such priority, and this kernel does nothing.
extern "C" __global__ void __launch_bounds__(512) kernelviz_replace_evict_last(
    const uint4* __restrict__ vectors, long long count, unsigned guard, unsigned* sink) {
#if __CUDA_ARCH__ >= 800
    unsigned sum = 0;
    unsigned long long policy;
    asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
    const long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {
        uint4 v;
        asm volatile("ld.global.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;"
                     : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                     : "l"(vectors + i), "l"(policy));
        sum |= v.x | v.y | v.z | v.w;
    }
    if (sum == guard) {
        *sink = sum;
    }
#endif
}

// Sets the priority of the lines of that buffer (128 bytes each) to evict_normal, so that the reads of the flush and of the call can
// evict them.
extern "C" __global__ void __launch_bounds__(512) kernelviz_reset_priority(const uint4* vectors, long long lines) {
#if __CUDA_ARCH__ >= 800
    const long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < lines; i += step) {
        asm volatile("applypriority.global.L2::evict_normal [%0], 128;" ::"l"(vectors + 8 * i) : "memory");
    }
#endif
}

extern "C" __global__ void kernelviz_end_marker(long long* cycles) { store_clock(cycles); }

// Of each SM its cycle counter and the device's time in ns, one after the other: two of them tell the SM clock between.
extern "C" __global__ void kernelviz_clocks(long long* clocks) {
    if (threadIdx.x == 0) {
        long long now_ns;
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now_ns));
        clocks[2 * sm_id()] = clock64();
        clocks[2 * sm_id() + 1] = now_ns;
    }
}

// Takes the place of the flush before a call whose data stay in the caches.
extern "C" __global__ void __launch_bounds__(512) kernelviz_begin_marker(long long* cycles) { store_clock(cycles); }

// Fills `count` bytes with 0xFF (a NaN in every float format), so that elements that the call does not write can be found.
extern "C" __global__ void __launch_bounds__(512) kernelviz_poison(unsigned char* bytes, long long count) {
    const long long step = (long long)gridDim.x * blockDim.x;
    const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    const bool aligned = (reinterpret_cast<unsigned long long>(bytes) & 15) == 0;
    const long long vectors = aligned ? count / 16 : 0;
    const uint4 ones = make_uint4(~0u, ~0u, ~0u, ~0u);
    for (long long i = first; i < vectors; i += step) {
        reinterpret_cast<uint4*>(bytes)[i] = ones;
    }
    for (long long i = vectors * 16 + first; i < count; i += step) {
        bytes[i] = 0xFF;
    }
}

extern "C" __global__ void kernelviz_empty() {}
