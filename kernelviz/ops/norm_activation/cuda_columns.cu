// `norm_activation` (gelu of a layer normalisation) by persistent clusters with fixed columns (persistent_columns.cuh): weight and bias
// stay in registers, and the next rows are prefetched while a row is stored. The copy roof of an H200 allows 27 instructions an element
// in 16 bits; cuda.cu takes 23, this kernel 14 and a cost for each row:
//   - Σ x and Σ x² of 16-bit elements on the tensor cores, five instructions a vector of 8 elements instead of 24, in one pass over the
//     row and one exchange. Products of two such elements are exact in fp32, in which they are summed.
//   - x̂ = x r - μ r, x̂ w + b: two multiply-adds.
//   - gelu by a polynomial of the degree that the format needs.
// Σ x² - μ Σ x loses the variance of rows with a large mean. For rows with |μ| > 4 σ (and where x² overflows) a second pass and a second
// exchange sum the squared distances from the mean.
#include "conversions.cuh"
#include "gelu.cuh"
#include "persistent_columns.cuh"

using T = ELEMENT;
using W = Vec16<T>;
constexpr int WIDTH = W::WIDTH;
template <typename E> constexpr bool IS_HALF = false;
template <> constexpr bool IS_HALF<__half> = true;

struct Moments {
    float sum, squares;
};
struct Combine {
    __device__ __forceinline__ Moments operator()(Moments a, Moments b) const { return {a.sum + b.sum, a.squares + b.squares}; }
};
using C = PersistentColumns<T, ROW_LANES, ROW_VECTORS, ROW_CLUSTER, ROW_STAGES, ROW_FULL, Moments>;

// d += a b for 16 x 16 and 16 x 8 elements, and for 16 x 8 and 8 x 8. Lane l holds rows l / 4 and, in odd registers, l / 4 + 8 of a;
// column l / 4 of b; and row l / 4, columns 2 (l % 4) and 2 (l % 4) + 1 of d, then the same of row l / 4 + 8 (PTX ISA, mma.m16n8k16,
// m16n8k8).
#define MULTIPLY(FORMAT)                                                                                                    \
    static __device__ __forceinline__ void multiply_16(float (&d)[4], const uint4& a, unsigned b) {                         \
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." FORMAT "." FORMAT ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, " \
                     "{%8, %8}, {%0, %1, %2, %3};"                                                                          \
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                                       \
                     : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b));                                                     \
    }                                                                                                                       \
    static __device__ __forceinline__ void multiply_8(float (&d)[4], unsigned a, unsigned lower, unsigned b) {              \
        asm volatile("mma.sync.aligned.m16n8k8.row.col.f32." FORMAT "." FORMAT ".f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "    \
                     "{%0, %1, %2, %3};"                                                                                    \
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                                       \
                     : "r"(a), "r"(lower), "r"(b));                                                                         \
    }
template <typename E> struct Tensor;
template <> struct Tensor<__nv_bfloat16> {
    static constexpr unsigned ONES = 0x3f803f80u;
    MULTIPLY("bf16")
};
template <> struct Tensor<__half> {
    static constexpr unsigned ONES = 0x3c003c00u;
    MULTIPLY("f16")
};
#undef MULTIPLY

// Moments over this warp's part of a row that has arrived.
template <typename E> __device__ __forceinline__ Moments moments_of(const C& columns, int stage) {
    if constexpr (sizeof(E) == 4) {
        float sum[2] = {0.0f, 0.0f}, squares[2] = {0.0f, 0.0f};
#pragma unroll
        for (int k = 0; k < ROW_VECTORS; ++k) {
            float a[WIDTH];
            widen(columns.vector(stage, k), a);
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) {
                sum[e % 2] += a[e];
                squares[e % 2] = fmaf(a[e], a[e], squares[e % 2]);
            }
        }
        return warp_reduce<32>(Moments{sum[0] + sum[1], squares[0] + squares[1]}, Combine{});
    } else {
        // Multiplied by ones, every column of d holds the sums of rows. Multiplied by the transposed rows, the diagonal holds the squares;
        // the other elements are not used. Of a vector's registers the even ones are the first eight rows, the odd ones the last eight.
        float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f}, upper[4] = {0.0f, 0.0f, 0.0f, 0.0f}, lower[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
        for (int k = 0; k < ROW_VECTORS; ++k) {
            const W vector = columns.vector(stage, k);
            const uint4 v = *reinterpret_cast<const uint4*>(&vector);
            Tensor<E>::multiply_16(sum, v, Tensor<E>::ONES);
            Tensor<E>::multiply_8(upper, v.x, v.y, v.x);
            Tensor<E>::multiply_8(lower, v.x, v.y, v.y);
            Tensor<E>::multiply_8(upper, v.z, v.w, v.z);
            Tensor<E>::multiply_8(lower, v.z, v.w, v.w);
        }
        const int lane = threadIdx.x % 32, off = lane / 4 - 2 * (lane % 4);  // distance to the diagonal in columns
        const float even = upper[0] + lower[2], odd = upper[1] + lower[3];
        const float squares = off == 0 ? even : off == 1 ? odd : 0.0f;
        float total = sum[0] + sum[2];
#pragma unroll
        for (int lanes = 16; lanes >= 4; lanes /= 2) {
            total += __shfl_xor_sync(0xffffffffu, total, lanes);
        }
        return {total, warp_reduce<32>(squares, Add{})};
    }
}

// The polynomial may err by a share of what the op's bound allows beyond the rounding of the output. The bound includes an error of
// u |z| in z, which does not change gelu at its minimum (-0.752) and does elsewhere. So bf16 needs only degree 4 (6 % of the
// allowance), fp16 degree 5 (4 %), fp32 degree 8.
__device__ __forceinline__ float gelu(float x) { return gelu_polynomial<sizeof(T) == 4 ? 8 : IS_HALF<T> ? 5 : 4>(x); }

extern "C" __global__ void __launch_bounds__(ROW_LANES, ROW_BLOCKS) layernorm_gelu_columns(
    const T* __restrict__ x, const T* __restrict__ w, const T* __restrict__ b, T* __restrict__ y, long long m, int n, float eps,
    int* tile_counter) {
    C columns(x, m, n, tile_counter);
    W g[ROW_VECTORS], c[ROW_VECTORS];
#pragma unroll
    for (int k = 0; k < ROW_VECTORS; ++k) {
        g[k] = columns.load_beside(w, k);
        c[k] = columns.load_beside(b, k);
    }
    const float of_n = 1.0f / n;
    columns.start();
    columns.send(0, moments_of<T>(columns, 0));
    int stage = 0;
    long long row = columns.row(0);
    int step = 0;
    for (; row < m; ++step) {
        const int next_stage = C::next_stage(stage);
        columns.wait_until_arrived<ROW_STAGES - 2>();
        const Moments ahead = moments_of<T>(columns, next_stage);
        const Moments moments = combine_parts<C::PARTS>(columns.receive(step), Combine{}, Moments{0.0f, 0.0f});
        const float mean = moments.sum * of_n;
        float distances = fmaf(-mean, moments.sum, moments.squares);  // Σ (x - μ)²
        if (!(distances * 16.0f >= moments.squares)) {
            float total = 0.0f;
#pragma unroll 1
            for (int k = 0; k < ROW_VECTORS; ++k) {
                float a[WIDTH];
                widen(columns.vector(stage, k), a);
                if (columns.has(k)) {
#pragma unroll
                    for (int e = 0; e < WIDTH; ++e) {
                        total = fmaf(a[e] - mean, a[e] - mean, total);
                    }
                }
            }
            const Moments part = {0.0f, warp_reduce<32>(total, Add{})};
            distances = combine_parts<C::PARTS>(columns.exchange(part), Combine{}, Moments{0.0f, 0.0f}).squares;
        }
        const long long next = columns.row(step + ROW_STAGES);
        columns.send(step + 1, ahead);

        const float scale = rsqrtf(fmaf(distances, of_n, eps)), shift = -mean * scale;
        W v[ROW_VECTORS];
        columns.consume(stage, next, v);
        T* to = y + columns.first(row);
#pragma unroll
        for (int k = 0; k < ROW_VECTORS; ++k) {
            float a[WIDTH], factor[WIDTH], summand[WIDTH];
            widen(v[k], a);
            widen(opaque(g[k]), factor);
            widen(opaque(c[k]), summand);
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) {
                a[e] = gelu(fmaf(fmaf(a[e], scale, shift), factor[e], summand[e]));
            }
            if (columns.has(k)) {
                store_vec16(reinterpret_cast<W*>(to + k * (ROW_LANES * WIDTH)), narrow<T>(a));
            }
        }
        stage = next_stage;
        row = columns.row(step + 1);
    }
    columns.finish(step);
}
