#pragma once
#include "fibers.h"

unsigned char* in_shared(Block& of, unsigned address, unsigned bytes);
inline unsigned char* in_shared(unsigned address, unsigned bytes) { return in_shared(block(), address, bytes); }
// Of global memory: whether a range that the test names as readable, from that one on, has all of these bytes.
void check_inside(const void* from, unsigned bytes, unsigned first_range, const char* what);
void check_banks(const Fiber* lanes, unsigned bytes, const char* what);
// TMA and wgmma exchange the 16-byte parts of 128 bytes by bits 7 to 9 of the address.
inline unsigned swizzled(unsigned address) { return address ^ (address >> 7 & 7) << 4; }
