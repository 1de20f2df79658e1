// What an emulated kernel of CUDA C++ sees in place of CUDA: its variables, types and barriers, and the instructions that the headers in this
// folder call. kernel.cpp (written by tests/ops/emulator.py) includes it before the kernel; the functions are in runtime/, which is compiled once.
// It includes next to nothing, so that a kernel compiles fast.
#pragma once
#include <cstring>

struct Index {
    unsigned x, y, z;
};
struct alignas(8) uint2 {
    unsigned x, y;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct alignas(8) float2 {
    float x, y;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __grid_constant__
#define __restrict__
#define __align__(bytes) __attribute__((aligned(bytes)))
// Static shared memory is in a section of its own, so that the runtime can fill it with NaN before each block.
#define __shared__ static __attribute__((section("static_shared")))
extern unsigned char memory[];  // "extern __shared__": only its address counts

extern Index threadIdx, blockIdx, blockDim, gridDim;

template <class T> constexpr T min(T a, T b) { return b < a ? b : a; }
template <class T> constexpr T max(T a, T b) { return a < b ? b : a; }
template <class T> T __ldg(const T* from) { return *from; }
template <class T> T __ldcg(const T* from) { return *from; }
extern "C" float erff(float) noexcept;
extern "C" float expf(float) noexcept;
extern "C" float logf(float) noexcept;
extern "C" float exp2f(float) noexcept;
extern "C" float fmaf(float, float, float) noexcept;
extern "C" float fabsf(float) noexcept;
extern "C" float fmaxf(float, float) noexcept;
#define __expf expf
inline float __fdividef(float a, float b) { return a / b; }
inline float __uint_as_float(unsigned bits) { return __builtin_bit_cast(float, bits); }
inline unsigned __float_as_uint(float value) { return __builtin_bit_cast(unsigned, value); }
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
    const unsigned long long both = (unsigned long long)b << 32 | a;
    unsigned out = 0;
    for (int i = 0; i < 4; ++i) {
        out |= (unsigned)(both >> (selector >> 4 * i & 7) * 8 & 0xff) << 8 * i;
    }
    return out;
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned bits) {
    return (unsigned)(((unsigned long long)high << 32 | low) >> bits);
}
inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned long long)a * b >> 32; }
inline void __threadfence() {}
inline unsigned atomicAdd(unsigned* to, unsigned more) {  // fibers give way only where they wait
    const unsigned before = *to;
    *to += more;
    return before;
}
inline float atomicAdd(float* to, float more) {
    const float before = *to;
    *to += more;
    return before;
}

namespace emulated {
enum class Format { BF16, FP16, TF32, E4M3 };

void fail(const char* what);  // ends the launch
unsigned address_of(const void* pointer);
unsigned dynamic_shared_memory();
void* dynamic_shared_pointer();
void barrier_of_threads(unsigned number, unsigned threads);
void warp_barrier();

// By all threads of a warp.
void store(unsigned to, const void* value, unsigned bytes);
void load(void* value, unsigned from, unsigned bytes);
void ldmatrix(unsigned* to, unsigned row, bool transposed);
void stmatrix(unsigned to, const unsigned* values, bool transposed = false);
float of_lane_with(float value, int mask);
float of_lane(float value, int lane);
// A value plus that of the lane so far below, if there is one.
inline float with_lane_below(float value, int apart) {
    const int lane = threadIdx.x % 32;
    const float other = of_lane(value, lane >= apart ? lane - apart : lane);
    return lane >= apart ? value + other : value;
}
inline unsigned of_lane_with(unsigned value, int mask) {
    return __builtin_bit_cast(unsigned, of_lane_with(__builtin_bit_cast(float, value), mask));
}
int warp_sum(int value);
void mma(float* d, const unsigned* a, const unsigned* b, Format format);
void mma_of_bytes(int* d, const unsigned* a, const unsigned* b);  // a without signs, b with
void wmma_load(void* to, unsigned bytes_of_thread, const void* from, unsigned pitch_bytes, unsigned width, unsigned element_bytes);
void wmma(float* d, const unsigned* a, const unsigned* b, Format format);
void wmma_store(float* to, const float* sums, unsigned pitch_bytes);

// By one thread.
void store_alone(unsigned to, const void* value, unsigned bytes);
void load_alone(void* value, unsigned from, unsigned bytes, int block = -1);
void load_once(void* value, const void* from, unsigned bytes);
bool is_last_to_arrive(unsigned* arrived, unsigned parts);

// cp.async
void copy_async(unsigned to, const void* from, unsigned bytes, bool valid);
void copy_async_alone(void* to, const void* from, unsigned bytes, bool valid);
void commit_copies();
void wait_for_copies(unsigned pending);

// mbarriers, clusters and TMA
void barrier_init(unsigned barrier, int arrivals);
void barrier_wait(unsigned barrier, int parity);
void barrier_expect(unsigned barrier, int bytes);
void barrier_arrive(unsigned barrier, int of_block);
int rank_in_cluster();
void cluster_barrier();
void load_box(unsigned short blocks, unsigned to, const char* map, int column, int row, unsigned barrier);
void load_windows(unsigned to, const char* map, int channel, int column, int row, int image, int tap_column, int tap_row, unsigned barrier);
void load_taps(unsigned to, const char* map, int channel, int tap, int filter, unsigned barrier);
void store_box(unsigned from, const char* map, int column, int row);
void copy_bulk(unsigned to, const void* from, unsigned bytes, unsigned barrier);
void store_bulk(void* to, unsigned from, unsigned bytes);
void prefetch(const void* from);
void fence_for_tma();
void store_commit();
void store_wait(unsigned pending);

// wgmma. A is in registers if there are any; else K is contiguous in it, or M.
struct Operands {
    Format format;
    bool a_k_contiguous, b_k_contiguous;
};
void wgmma(float* d, unsigned sums, const unsigned* a_registers, unsigned long long a, unsigned long long b, bool add, Operands operands);
void wgmma_fence();
void wgmma_commit();
void wgmma_wait(unsigned pending);
}  // namespace emulated

inline void __syncthreads() { emulated::barrier_of_threads(0, blockDim.x * blockDim.y); }
inline void __syncwarp() { emulated::warp_barrier(); }
inline unsigned __cvta_generic_to_shared(const void* pointer) { return emulated::address_of(pointer); }

// Calls a kernel with 64-bit numbers as its arguments.
template <unsigned... AT> struct Places {};
template <class... ARGUMENTS, unsigned... AT>
void call_with(void (*kernel)(ARGUMENTS...), const long long* values, Places<AT...>) {
    kernel((ARGUMENTS)values[AT]...);
}
template <class... ARGUMENTS> void call_with(void (*kernel)(ARGUMENTS...), const long long* values) {
    call_with(kernel, values, Places<__integer_pack(sizeof...(ARGUMENTS))...>{});
}
