// bfloat16 for the processor: rounded to nearest, ties to even. Finite numbers only.
#pragma once
#include <cstring>

struct __nv_bfloat16 {
    unsigned short bits;
    __nv_bfloat16() = default;
    __nv_bfloat16(float value) {
        unsigned wide;
        memcpy(&wide, &value, 4);
        bits = static_cast<unsigned short>((wide + 0x7fff + (wide >> 16 & 1)) >> 16);
    }
    operator float() const {
        const unsigned wide = static_cast<unsigned>(bits) << 16;
        float value;
        memcpy(&value, &wide, 4);
        return value;
    }
};
