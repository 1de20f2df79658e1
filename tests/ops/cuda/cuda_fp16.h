// IEEE half precision for the processor: g++ has the type and rounds to nearest, ties to even.
#pragma once

struct __half {
    _Float16 value;
    __half() = default;
    __half(float number) : value(static_cast<_Float16>(number)) {}
    operator float() const { return static_cast<float>(value); }
};
