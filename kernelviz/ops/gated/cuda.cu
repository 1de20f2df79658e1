// CUDA C++ kernels of the gated activations y = g(a) b. ELEMENT is float, __half or __nv_bfloat16; GATE is Swish or TanhGelu.
#include "conversions.cuh"
#include "one_element.cuh"

// 1 / (1 + exp(-v)) by one power of two and one reciprocal of the special-function unit; subnormal results are flushed.
__device__ __forceinline__ float logistic(float v) {
    float out;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(out) : "f"(1.0f + exp2_fast(v * -1.4426950408889634f)));
    return out;
}

// Both gates are a times the logistic function of w(a); `slope` is dw/da.
struct Swish {
    static __device__ __forceinline__ float w(float a) { return a; }
    static __device__ __forceinline__ float slope(float a) { return 1.0f; }
};
// (1 + tanh z) / 2 = logistic(2 z): no tanh, and no cancellation for negative z. 2 z = 2 sqrt(2 / pi) (a + 0.044715 a^3).
struct TanhGelu {
    static constexpr float ONE = 1.5957691216057308f, CUBE = 0.044715f * ONE;
    static __device__ __forceinline__ float w(float a) { return a * fmaf(CUBE, a * a, ONE); }
    static __device__ __forceinline__ float slope(float a) { return fmaf(3.0f * CUBE, a * a, ONE); }
};

__device__ __forceinline__ float gated(float a, float b) { return a * logistic(GATE::w(a)) * b; }
// a becomes da, b becomes db.
__device__ __forceinline__ void gated_gradients(float& a, float& b, float dy) {
    const float s = logistic(GATE::w(a));
    const float g = a * s;
    const float dg = fmaf(g * (1.0f - s), GATE::slope(a), s);
    a = dy * b * dg;
    b = dy * g;
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS) gated_scalar(
    const ELEMENT* __restrict__ a, const ELEMENT* __restrict__ b, ELEMENT* __restrict__ out, INDEX last) {
    const INDEX i = element_of_thread(last);
    out[i] = from_float<ELEMENT>(gated(to_float(a[i]), to_float(b[i])));
}

template <typename Index>
__device__ __forceinline__ void gradients_of_one(
    const ELEMENT* __restrict__ a, const ELEMENT* __restrict__ b, const ELEMENT* __restrict__ dy, ELEMENT* __restrict__ da,
    ELEMENT* __restrict__ db, Index i) {
    float wide_a = to_float(a[i]), wide_b = to_float(b[i]);
    gated_gradients(wide_a, wide_b, to_float(dy[i]));
    da[i] = from_float<ELEMENT>(wide_a);
    db[i] = from_float<ELEMENT>(wide_b);
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS) gated_backward_scalar(
    const ELEMENT* __restrict__ a, const ELEMENT* __restrict__ b, const ELEMENT* __restrict__ dy, ELEMENT* __restrict__ da,
    ELEMENT* __restrict__ db, INDEX last) {
    gradients_of_one(a, b, dy, da, db, element_of_thread(last));
}

constexpr int WIDTH = Vec16<ELEMENT>::WIDTH;
__device__ __forceinline__ void widened_at(const ELEMENT* from, long long i, float (&out)[WIDTH]) {
    widen(load_vec16(reinterpret_cast<const Vec16<ELEMENT>*>(from) + i), out);
}
__device__ __forceinline__ void narrowed_to(ELEMENT* to, long long i, const float (&in)[WIDTH]) {
    store_vec16(reinterpret_cast<Vec16<ELEMENT>*>(to) + i, narrow<ELEMENT>(in));
}

// One 16-byte vector of each input a thread, in small blocks. The elements after the last whole vector are processed by the next
// threads, one each.
extern "C" __global__ void __launch_bounds__(128) gated_vec16(
    const ELEMENT* __restrict__ a, const ELEMENT* __restrict__ b, ELEMENT* __restrict__ out, long long n) {
    const long long vectors = n / WIDTH;
    const long long i = (long long)blockIdx.x * 128 + threadIdx.x;
    if (i < vectors) {
        float wide_a[WIDTH], wide_b[WIDTH];
        widened_at(a, i, wide_a);
        widened_at(b, i, wide_b);
#pragma unroll
        for (int j = 0; j < WIDTH; ++j) {
            wide_a[j] = gated(wide_a[j], wide_b[j]);
        }
        narrowed_to(out, i, wide_a);
    } else if (i - vectors < n % WIDTH) {
        const long long at = vectors * WIDTH + (i - vectors);
        out[at] = from_float<ELEMENT>(gated(to_float(a[at]), to_float(b[at])));
    }
}

extern "C" __global__ void __launch_bounds__(128) gated_backward_vec16(
    const ELEMENT* __restrict__ a, const ELEMENT* __restrict__ b, const ELEMENT* __restrict__ dy, ELEMENT* __restrict__ da,
    ELEMENT* __restrict__ db, long long n) {
    const long long vectors = n / WIDTH;
    const long long i = (long long)blockIdx.x * 128 + threadIdx.x;
    if (i < vectors) {
        float wide_a[WIDTH], wide_b[WIDTH], wide_dy[WIDTH];
        widened_at(a, i, wide_a);
        widened_at(b, i, wide_b);
        widened_at(dy, i, wide_dy);
#pragma unroll
        for (int j = 0; j < WIDTH; ++j) {
            gated_gradients(wide_a[j], wide_b[j], wide_dy[j]);
        }
        narrowed_to(da, i, wide_a);
        narrowed_to(db, i, wide_b);
    } else if (i - vectors < n % WIDTH) {
        gradients_of_one(a, b, dy, da, db, vectors * WIDTH + (i - vectors));
    }
}
