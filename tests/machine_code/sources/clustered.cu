// A cluster of 4 x 2 blocks, at least two blocks a multiprocessor, and a local array that is indexed with a variable.
extern "C" __global__ void __cluster_dims__(4, 2, 1) __launch_bounds__(256, 2) clustered(float* x, int n) {
    extern __shared__ float shared[];
    float a[40];
    for (int i = 0; i < 40; i++) {
        a[i] = x[i * n];
    }
    for (int i = 0; i < n; i++) {
        a[i % 40] += a[(i * 7) % 40];
    }
    for (int i = 0; i < 40; i++) {
        x[i] = a[i] + shared[i];
    }
}
