// CUDA C++ kernel that copies the rows that ids name. VECTOR is the widest of unsigned short, unsigned, uint2 and uint4 that every row
// starts on and is a whole number of; nothing is converted, so bits stay as they are. `vectors`: vectors a row.

// One block a row.
extern "C" __global__ void __launch_bounds__(256) gather_row(
    const VECTOR* __restrict__ x, const long long* __restrict__ ids, VECTOR* __restrict__ out, int vectors) {
    const VECTOR* from = x + ids[blockIdx.x] * vectors;
    VECTOR* to = out + (long long)blockIdx.x * vectors;
    for (int i = threadIdx.x; i < vectors; i += blockDim.x) {
        to[i] = from[i];
    }
}
