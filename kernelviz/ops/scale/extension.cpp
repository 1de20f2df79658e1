// The plainest C++ extension of torch: torch's own product, called from C++ instead of from Python.
// These two headers are what it needs of torch/extension.h, which takes a compiler more than twice as long.
#include <ATen/ops/mul.h>
#include <torch/csrc/utils/pybind.h>

at::Tensor custom_scale(const at::Tensor& input, float scale) {
    TORCH_CHECK(input.is_cpu(), "custom_scale takes a tensor on the CPU");
    return at::mul(input, scale);
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("custom_scale", &custom_scale, "x * scale, for tensors on the CPU"); }
