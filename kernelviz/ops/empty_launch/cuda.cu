// One thread that stores one number, which proves that it ran: the least that a kernel can do.
extern "C" __global__ void __launch_bounds__(1) mark(float* done, long long i) {
    done[i] = 1.0f;
}
