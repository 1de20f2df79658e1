"""Workload: a data-parallel training step, and how much of the exchange of its gradients hides behind the backward pass."""

from kernelviz.core.workload import (
    Workload,
    WorkloadAxis,
    WorkloadChart,
    WorkloadFigure,
    WorkloadLimit,
    WorkloadPreset,
    WorkloadVariant,
)

WORKLOADS = (
    Workload(
        name="gradient_sync",
        title="Gradient synchronisation",
        summary="A step of DistributedDataParallel on two devices: how long the exchange of gradients is seen in the "
        "step, how much of "
        "it hides behind the backward pass, and what bucket sizes and compression change.",
        runner="kernelviz.workloads.gradient_sync.torch_runner:measure",
        axes=(
            WorkloadAxis(
                name="blocks",
                title="Blocks",
                help="Feed-forward blocks of the model, each with two matrices.",
                maximum=256,
            ),
            WorkloadAxis(
                name="width",
                title="Width",
                help="Features. A block has 8 × width² parameters.",
                minimum=8,
                maximum=16384,
            ),
            WorkloadAxis(name="batch", title="Rows", help="Rows of the input on each device.", maximum=2**20),
            WorkloadAxis(
                name="delay_us",
                title="Planted delay",
                help="By how much each exchange of a bucket of gradients is delayed on purpose before it starts, as on a slower "
                "network; 0: no delay. The backward pass is not delayed, and a single exchange of all gradients is delayed once.",
                unit="µs",
                planted=True,
                minimum=0,
                maximum=1_000_000,
            ),
        ),
        presets=(
            WorkloadPreset(
                name="blocks",
                title="32 blocks of 1,024, 4,096 rows",
                device_kinds=("cuda",),
                values={"blocks": (32,), "width": (1024,), "batch": (4096,), "delay_us": (0,)},
            ),
            WorkloadPreset(
                name="delayed",
                title="The same with a planted delay of 2 ms",
                device_kinds=("cuda",),
                values={"blocks": (32,), "width": (1024,), "batch": (4096,), "delay_us": (0, 2000)},
            ),
            WorkloadPreset(
                name="small",
                title="4 blocks of 128, 256 rows",
                device_kinds=("cpu",),
                values={"blocks": (4,), "width": (128,), "batch": (256,), "delay_us": (0,)},
            ),
        ),
        variants=(
            WorkloadVariant(
                name="after_backward",
                caption="One exchange of all gradients after the backward pass.",
                idea="The simplest exchange. Nothing of it can hide behind the backward pass.",
            ),
            WorkloadVariant(
                name="ddp",
                caption="DistributedDataParallel as it is: buckets of 25 MiB.",
                idea="A bucket is exchanged as soon as its gradients are made, while the backward pass goes on.",
            ),
            WorkloadVariant(
                name="bucket_1",
                caption="Buckets of 1 MiB.",
                idea="The exchange begins earlier, at the price of more and smaller messages.",
            ),
            WorkloadVariant(
                name="bucket_200",
                caption="Buckets of 200 MiB.",
                idea="Fewer and larger messages use the links better, but the first begins later.",
            ),
            WorkloadVariant(
                name="bf16_hook",
                caption="torch's hook bf16_compress_hook.",
                idea="Gradients are sent in bf16: half the bytes.",
            ),
            WorkloadVariant(
                name="powersgd_hook",
                caption="torch's hook powerSGD_hook of rank 2.",
                idea="Matrices are sent as two narrow factors, with error feedback, after products that take the place of bytes.",
                needs=("cuda",),
            ),
        ),
        baseline="ddp",
        figures=(
            WorkloadFigure(
                name="step_s",
                title="Step",
                unit="s",
                better="lower",
                headline=True,
                help="Forward pass, backward pass and exchange, as the mean over the ranks, which begin together. No optimizer.",
            ),
            WorkloadFigure(
                name="floor_s",
                title="Step without exchange",
                unit="s",
                help="The same step under no_sync, in the same rounds: the floor, whose gradients are not those of the "
                "whole batch.",
            ),
            WorkloadFigure(
                name="exposed_s",
                title="Exposed communication",
                unit="s",
                better="lower",
                help="The step minus the step without exchange of the same round. Below zero: nothing is exposed "
                "beyond the noise.",
            ),
            WorkloadFigure(
                name="hidden",
                title="Hidden share",
                unit="fraction",
                better="higher",
                help="Time in which the device computes and communicates, over the time in which it communicates, by "
                "the device's own "
                "stamps. Kernels of the exchange that wait for the other rank count as communicating.",
            ),
            WorkloadFigure(
                name="communicating_s",
                title="Communicating",
                unit="s",
                better="lower",
                help="Time in which at least one kernel of the exchange ran.",
            ),
            WorkloadFigure(
                name="computing_s", title="Computing", unit="s", help="Time in which at least one other kernel ran."
            ),
            WorkloadFigure(
                name="sent_bytes",
                title="Bytes sent",
                unit="B",
                better="lower",
                origin="counted",
                help="What a rank gives to the collectives in a step.",
            ),
            WorkloadFigure(
                name="peak_bytes",
                title="Peak memory",
                unit="B",
                better="lower",
                origin="counted",
                help="The most that torch's allocator gave during a step, for the model, its gradients, buckets and activations.",
            ),
            WorkloadFigure(
                name="gradient_error",
                title="Error of the gradient",
                unit="fraction",
                better="lower",
                origin="counted",
                help="Norm of the difference between the gradients of a step and the exact mean over the ranks, over its norm.",
            ),
        ),
        chart=WorkloadChart(kind="lanes", figures=("step_s", "exposed_s", "hidden")),
        limits=(
            WorkloadLimit(
                name="two_devices",
                text="Two devices of one host. More devices and slower links between hosts expose more; plant a delay "
                "to see how.",
            ),
            WorkloadLimit(
                name="synthetic_blocks",
                text="The blocks are feed-forward parts with random data. The share of the exchange follows from rows and width.",
            ),
            WorkloadLimit(
                name="no_powersgd_hook",
                text="torch's PowerSGD hook waits forever on gloo, because both ranks may begin its collectives in "
                "another order; the "
                "workload all_reduce measures PowerSGD on a CPU.",
                when="cpu",
            ),
        ),
        ranks=2,
        on_cpu="mechanics_only",
        budget_s=1.0,
        most_s=240.0,
    ),
)
