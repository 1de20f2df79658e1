// The formats of tensor cores by the types of elements.
#pragma once
#include "cuda_bf16.h"
#include "cuda_fp16.h"

template <class ELEMENT_TYPE> constexpr emulated::Format FORMAT_OF = emulated::Format::TF32;
template <> constexpr emulated::Format FORMAT_OF<__nv_bfloat16> = emulated::Format::BF16;
template <> constexpr emulated::Format FORMAT_OF<__half> = emulated::Format::FP16;
