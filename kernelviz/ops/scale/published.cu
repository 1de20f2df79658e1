// `scale` as a tutorial publishes its first CUDA extension (source 2): one element a thread, fp32, indices of 32 bits.
extern "C" __global__ void scale_published(const float* x, float* out, float scale, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = x[i] * scale;
    }
}
