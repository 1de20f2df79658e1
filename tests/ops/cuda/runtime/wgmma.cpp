// Products of a warpgroup, when the last of its threads issues them, or when they are waited for. Operands in shared memory by the descriptors of the PTX
// ISA ("Asynchronous Warpgroup Level Matrix Shared Memory Layout"), swizzled by 128 bytes; the result and A in registers by their fragment layouts.
// Sums are exact up to fp32, where the tensor core may have fewer bits.
#include "wgmma.h"

#include "formats.h"
#include "shared_memory.h"

static unsigned field(unsigned long long descriptor, int bit) { return (descriptor >> bit & 0x3FFF) << 4; }
// `to`: rows of A or columns of B (`across` of them), each with the elements of one step of K. K contiguous: 8 rows are 1024 bytes, the stride leads to
// the next 8. Else 64 of `across` are 128 bytes; the leading dimension leads to the next 64, the stride to the next 8 of K.
static void read_operand(unsigned long long descriptor, Format format, bool k_contiguous, unsigned across, float* to) {
    const unsigned start = field(descriptor, 0), leading = field(descriptor, 16), stride = field(descriptor, 32);
    const unsigned bytes = bytes_of(format), depth = 32 / bytes, part = 16 / bytes;
    if (descriptor >> 62 != 1) {
        fail("a descriptor without the 128-byte swizzle");
    }
    if (k_contiguous) {
        for (unsigned i = 0; i < across; ++i) {
            for (unsigned k = 0; k < depth; k += part) {
                const unsigned address = start + i / 8 * stride + i % 8 * 128 + k * bytes;
                decode(format, in_shared(swizzled(address), 16), part, to + i * depth + k);
            }
        }
        return;
    }
    for (unsigned k = 0; k < depth; ++k) {
        for (unsigned i = 0; i < across; i += part) {
            const unsigned address = start + i / 64 * leading + i % 64 * 2 + k / 8 * stride + k % 8 * 128;
            float values[8];
            decode(format, in_shared(swizzled(address), 16), part, values);
            for (unsigned e = 0; e < part; ++e) {
                to[(i + e) * depth + k] = values[e];
            }
        }
    }
}
// A in registers: see wgmma_tf32.cuh in kernelviz/ops/kernels/headers. `each` numbers are in a register.
static void read_registers(const Product& product, float* to) {
    const Format format = product.operands.format;
    const unsigned each = 4 / bytes_of(format);
    for (unsigned thread = 0; thread < WARPGROUP; ++thread) {
        float numbers[16];
        decode(format, product.registers[thread], 4 * each, numbers);
        for (unsigned i = 0; i < 4 * each; ++i) {
            const unsigned number = i / each;  // of the register
            const unsigned row = thread / 32 * 16 + thread % 32 / 4 + number % 2 * 8;
            to[row * 8 * each + (thread % 4 + number / 2 * 4) * each + i % each] = numbers[i];
        }
    }
}
template <unsigned DEPTH> static void multiply_rows(const Product& product, const float* a, const float* b_by_column) {
    static float b[DEPTH][256];
    const unsigned columns = product.columns;
    for (unsigned column = 0; column < columns; ++column) {
        for (unsigned k = 0; k < DEPTH; ++k) {
            b[k][column] = b_by_column[column * DEPTH + k];
        }
    }
    for (unsigned row = 0; row < 64; ++row) {
        // Of each eight columns, four threads have two neighbouring ones of this row.
        float* const* sums = product.sums + row / 16 * 32 + row % 8 * 4;
        const unsigned half = row % 16 / 8 * 2;
        float total[256];
        for (unsigned column = 0; column < columns; ++column) {
            total[column] = product.add ? sums[column % 8 / 2][column / 8 * 4 + half + column % 2] : 0.0f;
        }
        for (unsigned k = 0; k < DEPTH; ++k) {
            const float factor = a[row * DEPTH + k];
            for (unsigned column = 0; column < columns; ++column) {
                total[column] += factor * b[k][column];
            }
        }
        for (unsigned column = 0; column < columns; ++column) {
            sums[column % 8 / 2][column / 8 * 4 + half + column % 2] = total[column];
        }
    }
}
static void multiply(Product& product) {
    static float a[64 * 32], b[256 * 32];
    const Format format = product.operands.format;
    if (product.registers[0]) {
        read_registers(product, a);
    } else {
        read_operand(product.a, format, product.operands.a_k_contiguous, 64, a);
    }
    read_operand(product.b, format, product.operands.b_k_contiguous, product.columns, b);
    switch (32 / bytes_of(format)) {
        case 8: multiply_rows<8>(product, a, b); break;
        case 16: multiply_rows<16>(product, a, b); break;
        default: multiply_rows<32>(product, a, b);
    }
    product.complete = true;
}

namespace emulated {
void wgmma(float* d, unsigned sums, const unsigned* a_registers, unsigned long long a, unsigned long long b, bool add, Operands operands) {
    Fiber& mine = fiber();
    Warpgroup& group = block().warpgroups[mine.thread / WARPGROUP];
    if (!mine.products_fenced) {
        fail("a product without a fence after the last wait");
    }
    const unsigned number = mine.products++ - group.first;
    if (number == group.products.size()) {
        group.products.push_back({a, b, add, 2 * sums, operands});
    }
    Product& product = group.products[number];
    if (product.a != a || product.b != b || product.add != add || product.columns != 2 * sums) {
        fail("the threads of a warpgroup give wgmma different operands");
    }
    product.sums[mine.thread % WARPGROUP] = d;
    product.registers[mine.thread % WARPGROUP] = a_registers;
    if (++product.issued == WARPGROUP && now.at_once) {
        multiply(product);
    }
}
void wgmma_fence() { fiber().products_fenced = true; }
void wgmma_commit() { fiber().product_groups.push_back(fiber().products); }
void wgmma_wait(unsigned pending) {
    Fiber& mine = fiber();
    Warpgroup& group = block().warpgroups[mine.thread / WARPGROUP];
    unsigned up_to = 0;
    for (; mine.product_groups.size() > pending; mine.product_groups.pop_front()) {
        up_to = mine.product_groups.front();
    }
    mine.products_fenced = false;
    meet(group.meeting, WARPGROUP, [&] {
        for (; group.first < up_to; ++group.first) {
            if (group.products.front().issued != WARPGROUP) {
                fail("a product that only some threads of a warpgroup issue");
            }
            if (!group.products.front().complete) {
                multiply(group.products.front());
            }
            group.products.pop_front();
        }
    });
}
}  // namespace emulated
