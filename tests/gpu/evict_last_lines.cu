// A flush that also replaces lines which a call has read with the priority evict_last: see evict_last_lines.py.

// Read 16-byte vectors so that their lines get the priority evict_last themselves. They replace the lines of other data that have
// it, because these were used longer ago.
extern "C" __global__ void __launch_bounds__(512) kernelviz_replace_last(
    const uint4* __restrict__ vectors, long long count, unsigned guard, unsigned* sink) {
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
}

// Give these lines of 128 bytes the usual priority again, so that what is read next may replace them.
extern "C" __global__ void __launch_bounds__(512) kernelviz_usual_priority(const uint4* vectors, long long lines) {
    const long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < lines; i += step) {
        asm volatile("applypriority.global.L2::evict_normal [%0], 128;" ::"l"(vectors + 8 * i) : "memory");
    }
}
