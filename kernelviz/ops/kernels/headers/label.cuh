// The label's part of the gradient of a cross-entropy.
#pragma once

// p - 1(label) of a vector of WIDTH elements. `vector`, `label`: numbers in the row, counted from its first vector. One vector of a row
// holds the label, so one comparison a vector is enough.
template <int WIDTH> __device__ __forceinline__ void subtract_label(float (&p)[WIDTH], int vector, int label) {
    if (vector == label / WIDTH) {
#pragma unroll
        for (int e = 0; e < WIDTH; ++e) {
            p[e] -= e == label % WIDTH ? 1.0f : 0.0f;
        }
    }
}
