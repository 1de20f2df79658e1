// `cross_entropy_with_grad` of long rows by persistent clusters (persistent_exponentials.cuh): while one row's gradient is
// written, the next row is summed and the one after it is prefetched. Labels are read two rows ahead and the logit of the label one
// row ahead, so that no thread waits for either.
#include "label.cuh"
#include "persistent_exponentials.cuh"

struct LossAndGradient {
    const ELEMENT* x;
    const long long* labels;
    ELEMENT* loss;
    long long m;
    int n;
    bool leads;  // the thread that writes losses
    int label, label_next = 0, label_after = 0;  // of the rows that are written, summed, prefetched
    ELEMENT chosen;                              // the logit of the label of the row that is summed; converted late, because it arrives late

    __device__ __forceinline__ void prefetched(long long row) { label_after = row < m ? (int)labels[row] : 0; }
    __device__ __forceinline__ void summed(long long row) {
        label_next = label_after;
        if (leads && row < m) {
            chosen = x[row * n + label_next];
        }
    }
    __device__ __forceinline__ void reduced(long long row, Exponentials all) {
        label = label_next;
        if (leads) {
            loss[row] = from_float<ELEMENT>(logf(all.sum) + (all.top - to_float(chosen)));
        }
    }
    template <typename R, int WIDTH> __device__ __forceinline__ void vector(const R& row, int k, float (&p)[WIDTH]) const {
        subtract_label(p, row.vector(k), label + row.head);
    }
};

extern "C" __global__ void __launch_bounds__(ROW_LANES, ROW_BLOCKS) cross_entropy_with_grad_columns(
    const ELEMENT* __restrict__ x, const long long* __restrict__ labels, ELEMENT* __restrict__ loss, ELEMENT* __restrict__ dx,
    long long m, int n, int* tile_counter) {
    PersistentExponentials<ELEMENT, ROW_LANES, ROW_VECTORS, ROW_CLUSTER, COLUMNS_IN_REGISTERS, ROW_ALIGNED> columns(x, dx, m, n);
    LossAndGradient use = {x, labels, loss, m, n, threadIdx.x == 0 && columns.row.rank == 0, 0};
    columns.walk(tile_counter, use);
}
