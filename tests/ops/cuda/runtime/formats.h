// Numbers of the formats of tensor cores as fp32.
#pragma once
#include <cmath>

#include "fibers.h"

using emulated::Format;

inline unsigned bytes_of(Format format) { return format == Format::E4M3 ? 1 : format == Format::TF32 ? 4 : 2; }
inline float of_e4m3(unsigned char bits) {
    static const std::vector<float> values = [] {
        std::vector<float> of_bits(256);
        for (int i = 0; i < 256; ++i) {
            const int exponent = i >> 3 & 15, fraction = i & 7;
            const float size = exponent ? std::ldexp(8.0f + fraction, exponent - 10) : std::ldexp((float)fraction, -9);
            of_bits[i] = (i & 127) == 127 ? NAN : i & 128 ? -size : size;
        }
        return of_bits;
    }();
    return values[bits];
}
// tf32: the tensor core ignores the last 13 bits.
inline void decode(Format format, const void* from, unsigned count, float* to) {
    for (unsigned i = 0; i < count; ++i) {
        if (format == Format::E4M3) {
            to[i] = of_e4m3(static_cast<const unsigned char*>(from)[i]);
        } else if (format == Format::FP16) {
            _Float16 value;
            memcpy(&value, static_cast<const char*>(from) + 2 * i, 2);
            to[i] = value;
        } else if (format == Format::BF16) {
            unsigned short bits;
            memcpy(&bits, static_cast<const char*>(from) + 2 * i, 2);
            to[i] = __builtin_bit_cast(float, (unsigned)bits << 16);
        } else {
            unsigned bits;
            memcpy(&bits, static_cast<const char*>(from) + 4 * i, 4);
            to[i] = __builtin_bit_cast(float, bits & ~0x1fffu);
        }
    }
}
