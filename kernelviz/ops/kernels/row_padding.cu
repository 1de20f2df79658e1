// Copies of matrices of 16-bit elements whose rows become longer, with zeros at their end, or shorter, without their end. TMA needs rows of a
// multiple of 16 bytes, so a kernel that loads and stores by TMA takes any row length between two such copies. Definitions:
//   LOAD   elements of a load, 1, 2 or 4, of which both row lengths are multiples
//   INDEX  unsigned, or unsigned long long where a matrix has 2^32 elements or more
constexpr int VECTOR = 8;  // elements of 16 bytes

struct __align__(2 * LOAD) Part {
    unsigned short elements[LOAD];
};
struct __align__(16) Vector {
    Part parts[VECTOR / LOAD];
};

// 16 bytes of a result of `elements` elements, which may end within them.
__device__ __forceinline__ void copy_vector(
    const unsigned short* __restrict__ from, unsigned short* __restrict__ to, INDEX elements, int from_length, int to_length, INDEX number) {
    const INDEX first = number * VECTOR;
    INDEX row = first / to_length;
    int column = first % to_length;
    Vector copied = {};
#pragma unroll
    for (int i = 0; i < VECTOR / LOAD; ++i) {
        if (column < from_length && first + i * LOAD < elements) {
            copied.parts[i] = *reinterpret_cast<const Part*>(from + row * from_length + column);
        }
        column += LOAD;
        if (column == to_length) {
            column = 0;
            ++row;
        }
    }
    if (first + VECTOR <= elements) {
        *reinterpret_cast<Vector*>(to + first) = copied;
        return;
    }
#pragma unroll
    for (int i = 0; i < VECTOR / LOAD; ++i) {
        if (first + i * LOAD < elements) {
            *reinterpret_cast<Part*>(to + first + i * LOAD) = copied.parts[i];
        }
    }
}

// Two matrices of equal row lengths, in one launch; the second one may be empty. `to` and `to_other` have so many elements.
extern "C" __global__ void __launch_bounds__(256) copy_rows(
    const unsigned short* __restrict__ from, unsigned short* __restrict__ to, const unsigned short* __restrict__ from_other,
    unsigned short* __restrict__ to_other, long long elements, long long elements_of_other, int from_length, int to_length) {
    const INDEX number = (INDEX)blockIdx.x * blockDim.x + threadIdx.x;
    const INDEX vectors = (elements + VECTOR - 1) / VECTOR, vectors_of_other = (elements_of_other + VECTOR - 1) / VECTOR;
    if (number < vectors) {
        copy_vector(from, to, elements, from_length, to_length, number);
    } else if (number - vectors < vectors_of_other) {
        copy_vector(from_other, to_other, elements_of_other, from_length, to_length, number - vectors);
    }
}
