"""Workload: the sum of gradients over two devices, in fp32, bf16, and compressed by PowerSGD."""

from kernelviz.core.workload import (
    Workload,
    WorkloadAxis,
    WorkloadChart,
    WorkloadFigure,
    WorkloadLimit,
    WorkloadPreset,
    WorkloadVariant,
)

_POWERSGD = (
    "{r} (n + m) numbers are sent in place of n × m. What is left out is added to the next gradient (error feedback), so that it "
    "arrives later."
)
WORKLOADS = (
    Workload(
        name="all_reduce",
        title="Gradient all-reduce",
        summary="The sum of a gradient over two devices by message size: time, bandwidth by nccl-tests' definitions "
        "(the bus bandwidth is that of the bytes that are really sent), and what a "
        "compression by bf16 or PowerSGD saves in bytes and costs in error.",
        runner="kernelviz.workloads.all_reduce.torch_runner:measure",
        axes=(
            WorkloadAxis(
                name="bytes",
                title="Gradient",
                kind="bytes",
                minimum=64,
                maximum=2**32,
                help="Bytes of the fp32 gradient on each device. PowerSGD takes powers of two, as a nearly square matrix.",
            ),
        ),
        presets=(
            WorkloadPreset(
                name="all_sizes",
                title="1 KiB to 1 GiB",
                device_kinds=("cuda",),
                values={"bytes": tuple(2**e for e in range(10, 31, 2))},
            ),
            WorkloadPreset(
                name="small",
                title="1 KiB, 64 KiB and 1 MiB",
                device_kinds=("cpu",),
                values={"bytes": (2**10, 2**16, 2**20)},
            ),
            WorkloadPreset(name="one", title="64 MiB", values={"bytes": (2**26,)}),
        ),
        variants=(
            WorkloadVariant(
                name="fp32", caption="Sum of fp32 numbers.", idea="What DistributedDataParallel does by default."
            ),
            WorkloadVariant(
                name="bf16",
                caption="Round to bf16, sum, convert back.",
                idea="Half the bytes, at the price of rounding to 8 bits of mantissa and of two conversions.",
            ),
            WorkloadVariant(
                name="powersgd_r4",
                caption="PowerSGD of rank 4: compress, exchange, decompress.",
                idea=_POWERSGD.format(r=4),
            ),
            WorkloadVariant(
                name="powersgd_r2",
                caption="PowerSGD of rank 2: compress, exchange, decompress.",
                idea=_POWERSGD.format(r=2),
            ),
            WorkloadVariant(
                name="powersgd_r1",
                caption="PowerSGD of rank 1: compress, exchange, decompress.",
                idea="The fewest bytes: n + m.",
            ),
            WorkloadVariant(
                name="hierarchical",
                caption="Reduce inside of each host, then between hosts.",
                idea="Slow links between hosts carry one share per host instead of one per GPU.",
                needs=("two_hosts",),
                by_default=False,
            ),
        ),
        baseline="fp32",
        figures=(
            WorkloadFigure(
                name="time_s",
                title="Time",
                unit="s",
                better="lower",
                headline=True,
                help="One exchange with its conversions or compression, as the mean over the ranks, of several exchanges back to "
                "back that both ranks begin together. Of a small gradient it is the time in which the host launches one.",
            ),
            WorkloadFigure(
                name="algorithm_bytes_per_s",
                title="Algorithm bandwidth",
                unit="B/s",
                better="higher",
                help="S / t by nccl-tests' definition, where S is the bytes of the fp32 gradient in each variant: how "
                "fast gradients "
                "are exchanged. With compression it may exceed the links.",
            ),
            WorkloadFigure(
                name="bus_bytes_per_s",
                title="Bus bandwidth",
                unit="B/s",
                help="Bytes sent × 2 (n − 1) / n / t of n ranks: nccl-tests' bus bandwidth, of the bytes that are "
                "really sent. With two ranks and fp32 it equals the algorithm bandwidth; bf16 sends half as many bytes, so its "
                "bus bandwidth is half of its algorithm bandwidth. It is what the links carry in each direction; a compressed "
                "gradient needs less of it, so that it is no rank among variants.",
            ),
            WorkloadFigure(
                name="copy_share",
                title="Of a peer copy",
                unit="fraction",
                help="Bus bandwidth divided by the bandwidth per direction of plain copies of as many bytes as the "
                "gradient between "
                "the same devices, in both directions at once, in the same rounds. A comparison and no upper limit, so that it "
                "may exceed 100 %.",
            ),
            WorkloadFigure(
                name="copy_bytes_per_s",
                title="Peer copy",
                unit="B/s",
                help="Copies between the same devices in both directions at once, per direction; it is measured once "
                "for all variants, and stated with fp32. With gloo: send and receive.",
            ),
            WorkloadFigure(
                name="sent_bytes",
                title="Bytes sent",
                unit="B",
                better="lower",
                origin="counted",
                help="What a rank gives to the collectives for one gradient. A ring sends 2 (n − 1) / n of it over its links.",
            ),
            WorkloadFigure(
                name="gradient_error",
                title="Error of the gradient",
                unit="fraction",
                better="lower",
                origin="counted",
                help="Norm of the difference between the first delivered gradient and the exact mean, over the norm of the mean.",
            ),
            WorkloadFigure(
                name="accumulated_error",
                title="Error after 16 steps",
                unit="fraction",
                better="lower",
                origin="counted",
                help="The same for the sum of what 16 exchanges of one gradient delivered, with error feedback where "
                "the variant has "
                "it.",
            ),
            WorkloadFigure(
                name="low_rank_error",
                title="Least error of the rank",
                unit="fraction",
                origin="counted",
                help="The least error of any matrix of that rank, by the singular values of the exact mean; for "
                "matrices of up to "
                "1,024 rows.",
            ),
        ),
        chart=WorkloadChart(kind="lines", figures=("bus_bytes_per_s", "copy_bytes_per_s"), axis="bytes"),
        limits=(
            WorkloadLimit(
                name="copy_is_no_limit",
                text="The peer copy is no upper limit: torch starts each copy on its own and has the streams of both GPUs wait "
                "for each other, which takes about 30 µs; NCCL's kernel writes over the links while it adds. Of up to some "
                "16 MiB, an exchange can be faster than a copy.",
                when="cuda",
            ),
            WorkloadLimit(
                name="gloo_copy",
                text="The peer copy is a send and a receive by gloo, which can be slower than its all-reduce; a share above "
                "100 % says no more than that.",
                when="cpu",
            ),
            WorkloadLimit(
                name="two_hosts",
                text="A hierarchical all-reduce needs two hosts; on one host it is neither measured nor simulated.",
            ),
            WorkloadLimit(
                name="synthetic_gradient",
                text="The gradient is synthetic: 16 components of falling strength and a tenth of noise. How much of a "
                "real gradient a "
                "low rank keeps depends on the network and on the time in training.",
            ),
            WorkloadLimit(
                name="accuracy",
                text="An error of the gradient is no loss of accuracy; that would take training to the end.",
            ),
        ),
        ranks=2,
        on_cpu="mechanics_only",
        budget_s=0.5,
        most_s=180.0,
    ),
)
