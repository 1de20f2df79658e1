// Where each block runs. A block waits longer than the grid's launch takes, so that no SM gets a block of another's turn.
extern "C" __global__ void block_sm(int* sm_of_block) {
    unsigned sm;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    const long long begun = clock64();
    while (clock64() - begun < 4000) {
    }
    if (threadIdx.x == 0) {
        sm_of_block[blockIdx.x] = sm;
    }
}
