#pragma once
#include "fibers.h"

struct Product {  // of a warpgroup
    unsigned long long a, b;
    bool add;
    unsigned columns;
    emulated::Operands operands;
    unsigned issued = 0;  // threads
    float* sums[WARPGROUP];
    const unsigned* registers[WARPGROUP];  // of A, or nullptr
    bool complete = false;
};
