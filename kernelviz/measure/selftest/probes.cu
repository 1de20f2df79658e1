// Kernels that the selftest measures; their traffic is known by construction. No name may begin like the instrument's names.

// One 16-byte vector per thread: a copy of more vectors has more blocks of the same code.
extern "C" __global__ void __launch_bounds__(512) kernelviz_probe_copy(const uint4* in, uint4* out, long long count) {
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        out[i] = in[i];
    }
}

// Keeps a load alive without a write: the buffer holds values below 2^30, so no vector has all bits of `guard`.
__device__ __forceinline__ void use(const uint4 v, unsigned guard, unsigned* sink) {
    if ((v.x & v.y & v.z & v.w) == guard) {
        *sink = v.x;
    }
}

extern "C" __global__ void __launch_bounds__(512) kernelviz_probe_read(
    const uint4* in, long long count, unsigned guard, unsigned* sink) {
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        use(in[i], guard, sink);
    }
}

// The same with the evict_last priority, by which the L2 keeps the lines longest (as kernels of inductor do).
extern "C" __global__ void __launch_bounds__(512) kernelviz_probe_read_evict_last(
    const uint4* in, long long count, unsigned guard, unsigned* sink) {
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    unsigned long long policy;
    asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
    if (i < count) {
        uint4 v;
        asm volatile("ld.global.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;"
                     : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                     : "l"(in + i), "l"(policy));
        use(v, guard, sink);
    }
}
