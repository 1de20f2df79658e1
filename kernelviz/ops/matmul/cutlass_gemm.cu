// A matrix product of CUTLASS 3.x for Hopper: D (m, n) = f(A (m, k) B (k, n) + bias) in bf16 or fp16, added up in fp32; A and D row-major. It is
// a variant of `matmul`, and with a FUNCTION of `linear_relu`, `linear_gelu` and `linear_silu`.
//
// CUTLASS's collective builders choose the instructions, the layouts in shared memory and the number of stages. nvcc compiles this file to a
// shared library with the definitions
//   ELEMENT              cutlass::bfloat16_t or cutlass::half_t
//   TILE_M, TILE_N, TILE_K, CLUSTER_M, CLUSTER_N    of a block, in elements; of a cluster, in blocks
//   PINGPONG             1: two warpgroups multiply tiles of their own in turn; 0: they share a tile
//   B_K_CONTIGUOUS       1: B is stored as (n, k), as the weights of a linear layer are; 0: as (k, n)
//   FUNCTION             0: none, and no bias; 1: relu, 2: gelu (by erf), 3: silu
// and Python calls the three functions at its end. They return an empty text or an error message.
#include <new>

#include <cute/tensor.hpp>
#include <cutlass/cutlass.h>
#include <cutlass/epilogue/collective/collective_builder.hpp>
#include <cutlass/epilogue/fusion/operations.hpp>
#include <cutlass/epilogue/thread/activation.h>
#include <cutlass/gemm/collective/collective_builder.hpp>
#include <cutlass/gemm/device/gemm_universal_adapter.h>
#include <cutlass/gemm/kernel/gemm_universal.hpp>
#include <cutlass/gemm/kernel/tile_scheduler.hpp>

namespace {

using Element = ELEMENT;
using RowMajor = cutlass::layout::RowMajor;
using LayoutOfB = cute::conditional_t<B_K_CONTIGUOUS != 0, cutlass::layout::ColumnMajor, RowMajor>;
constexpr int ALIGNMENT = 8;  // elements, so 16 bytes, as TMA needs
using Tile = cute::Shape<cute::Int<TILE_M>, cute::Int<TILE_N>, cute::Int<TILE_K>>;
using Cluster = cute::Shape<cute::Int<CLUSTER_M>, cute::Int<CLUSTER_N>, cute::_1>;

using MainSchedule = cute::conditional_t<PINGPONG != 0, cutlass::gemm::KernelTmaWarpSpecializedPingpong,
                                         cutlass::gemm::KernelTmaWarpSpecializedCooperative>;
using EndSchedule = cute::conditional_t<PINGPONG != 0, cutlass::epilogue::TmaWarpSpecialized,
                                        cutlass::epilogue::TmaWarpSpecializedCooperative>;

#if FUNCTION == 0
using Fusion = cutlass::epilogue::fusion::LinearCombination<Element, float, void, float>;
#else
#if FUNCTION == 1
template <typename T> using Activation = cutlass::epilogue::thread::ReLu<T>;
#elif FUNCTION == 2
template <typename T> using Activation = cutlass::epilogue::thread::GELU<T>;
#else
template <typename T> using Activation = cutlass::epilogue::thread::SiLu<T>;
#endif
using Fusion = cutlass::epilogue::fusion::LinCombPerColBiasEltAct<Activation, Element, float, Element, void, float, ALIGNMENT>;
#endif

using End = typename cutlass::epilogue::collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Tile, Cluster, cutlass::epilogue::collective::EpilogueTileAuto, float, float, void,
    RowMajor, ALIGNMENT, Element, RowMajor, ALIGNMENT, EndSchedule, Fusion>::CollectiveOp;

using Main = typename cutlass::gemm::collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Element, RowMajor, ALIGNMENT, Element, LayoutOfB, ALIGNMENT, float, Tile, Cluster,
    cutlass::gemm::collective::StageCountAutoCarveout<static_cast<int>(sizeof(typename End::SharedStorage))>, MainSchedule>::CollectiveOp;

using Kernel = cutlass::gemm::kernel::GemmUniversal<cute::Shape<int, int, int, int>, Main, End, cutlass::gemm::PersistentScheduler>;
using Gemm = cutlass::gemm::device::GemmUniversalAdapter<Kernel>;

// The stride of a matrix whose rows or columns have this many elements; which of the two, the type says.
template <typename Stride> Stride stride_of(int pitch) {
    Stride stride{};
    if constexpr (cute::is_static<cute::remove_cvref_t<decltype(cute::get<0>(stride))>>::value) {
        cute::get<1>(stride) = pitch;
    } else {
        cute::get<0>(stride) = pitch;
    }
    return stride;
}

const char* text_of(cutlass::Status status) { return status == cutlass::Status::kSuccess ? "" : cutlass::cutlassGetStatusString(status); }

}  // namespace

// Prepares the product of these device pointers on this GPU, and stores in `bound` what kernelviz_launch gets. `swizzle`: how many tiles wide
// the strips are in which the tiles are computed (1, 2, 4 or 8); `along_n`: -1 CUTLASS's choice, 0 along m, 1 along n.
extern "C" const char* kernelviz_bind(void** bound, const void* a, const void* b, const void* bias, void* d, int m, int n, int k, int device,
                                      int swizzle, int along_n) {
    *bound = nullptr;
    const cudaError_t selected = cudaSetDevice(device);
    if (selected != cudaSuccess) {
        return cudaGetErrorString(selected);
    }
    cutlass::KernelHardwareInfo hardware = cutlass::KernelHardwareInfo::make_kernel_hardware_info<Kernel>(device);
    typename Gemm::Arguments arguments{};
    arguments.mode = cutlass::gemm::GemmUniversalMode::kGemm;
    arguments.problem_shape = {m, n, k, 1};
    arguments.mainloop.ptr_A = static_cast<const Element*>(a);
    arguments.mainloop.dA = stride_of<typename Kernel::StrideA>(k);
    arguments.mainloop.ptr_B = static_cast<const Element*>(b);
    arguments.mainloop.dB = stride_of<typename Kernel::StrideB>(B_K_CONTIGUOUS ? k : n);
    arguments.epilogue.thread.alpha = 1.0f;
    arguments.epilogue.thread.beta = 0.0f;
#if FUNCTION != 0
    arguments.epilogue.thread.bias_ptr = static_cast<const Element*>(bias);
#endif
    arguments.epilogue.ptr_C = nullptr;
    arguments.epilogue.dC = stride_of<typename Kernel::StrideC>(n);
    arguments.epilogue.ptr_D = static_cast<Element*>(d);
    arguments.epilogue.dD = stride_of<typename Kernel::StrideD>(n);
    arguments.hw_info = hardware;
    arguments.scheduler.max_swizzle_size = swizzle;
    using Order = decltype(arguments.scheduler.raster_order);
    arguments.scheduler.raster_order = along_n < 0 ? Order::Heuristic : along_n > 0 ? Order::AlongN : Order::AlongM;

    const cutlass::Status possible = Gemm::can_implement(arguments);
    if (possible != cutlass::Status::kSuccess) {
        return text_of(possible);
    }
    if (Gemm::get_workspace_size(arguments) != 0) {
        return "this schedule needs a workspace, which is not allocated here";
    }
    Gemm* gemm = new (std::nothrow) Gemm();
    if (gemm == nullptr) {
        return "no memory is left";
    }
    const cutlass::Status ready = gemm->initialize(arguments);
    if (ready != cutlass::Status::kSuccess) {
        delete gemm;
        return text_of(ready);
    }
    *bound = gemm;
    return "";
}

// Enqueues the product on a stream of that GPU.
extern "C" const char* kernelviz_launch(void* bound, void* stream) {
    return text_of(static_cast<Gemm*>(bound)->run(static_cast<cudaStream_t>(stream)));
}

extern "C" void kernelviz_release(void* bound) { delete static_cast<Gemm*>(bound); }
