// The type of an access of so many bytes to memory: BitsOf<2>::Type to BitsOf<16>::Type.
#pragma once

template <int BYTES> struct BitsOf;
template <> struct BitsOf<2> {
    using Type = unsigned short;
};
template <> struct BitsOf<4> {
    using Type = unsigned;
};
template <> struct BitsOf<8> {
    using Type = uint2;
};
template <> struct BitsOf<16> {
    using Type = uint4;
};
