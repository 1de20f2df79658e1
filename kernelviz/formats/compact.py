"""A run as a small file, for the recorded runs that come with the package: samples and blocks in columns of whole numbers.

What is shown of a run stays the same: the estimates and intervals of figures are stored exactly. Samples, and the sums behind the
trimmed means of blocks, are rounded to 1 ps, percentiles and extents to 0.1 ns, the start of a block to 0.1 ms and its clock to
1 MHz. A figure that this form cannot hold stays as it is in the document. The file holds the digest of the run that it
stands for.
"""

import lzma
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np
from numpy.typing import NDArray

from kernelviz.core import Block, DocumentError, Failure, Figure, Outcome, Run, Timing
from kernelviz.core.code import packed, unpacked
from kernelviz.formats import code_file, document
from kernelviz.formats.import_format import MAX_BYTES, Import
from kernelviz.formats.validation import checked
from kernelviz.metrics.quality import is_slow
from kernelviz.metrics.statistics import cut_at_each_end

SAMPLE_PER_S, START_PER_S, CLOCK_PER_HZ, PERCENTILE_PER_S = 1e12, 1e4, 1e-6, 1e10
"""Steps in a second and in a hertz, of samples, of starts, of clocks and of percentiles."""
_MAGIC = b"KVZ1"
_LARGEST = 2**53
_COLUMNS = lzma.FILTER_LZMA2
_FILTERS = [{"id": _COLUMNS, "preset": 9 | lzma.PRESET_EXTREME, "lc": 0, "lp": 0, "pb": 0}]
"""Columns of bytes have no alignment and no text, for which LZMA's defaults are made."""
Ints = NDArray[np.int64]


class _Head(msgspec.Struct, frozen=True):
    """`figures`: result and field of each figure whose samples are in columns, by field. `columns`: name, length and width in
    bytes of each column. `code`: digest and length of each artifact, in order. `body_bytes`: the packed columns, after which the
    packed artifacts follow; 0 where there are none. `digest`: of the decoded run; empty in files before 2026-11-26."""

    run: msgspec.Raw
    figures: dict[str, list[int]]
    columns: list[tuple[str, int, int]]
    code: list[tuple[str, int]] = []
    body_bytes: int = 0
    digest: str = ""


@dataclass(slots=True)
class _Columns:
    """Columns of whole numbers by name, each a list of parts."""

    parts: dict[str, list[Ints]] = field(default_factory=dict)

    def add(self, name: str, values: Ints | Sequence[int]) -> None:
        self.parts.setdefault(name, []).append(np.asarray(values, dtype=np.int64))


@dataclass(slots=True)
class _Reader:
    """Takes the values of each column in the order in which they were added."""

    columns: dict[str, Ints]
    position: dict[str, int] = field(default_factory=dict)

    def take(self, name: str, count: int) -> Ints:
        start = self.position.get(name, 0)
        self.position[name] = start + count
        values = self.columns[name][start : start + count]
        if len(values) != count:
            raise DocumentError(f"column {name} is too short")
        return values


def encode(run: Run) -> bytes:
    """The run as a compact file. Equal runs give equal files.

    The contents of its code are packed together, because they are alike.
    """
    contents = [(content.digest, unpacked(content)) for content in run.code or ()]
    run = msgspec.structs.replace(run, code=msgspec.UNSET)
    columns, figures = _Columns(), dict[str, list[int]]()
    for name in _fields():
        for index, result in enumerate(run.results):
            figure = _figure(result.outcome, name)
            if figure is not None and _fits(figure):
                figures.setdefault(name, []).append(index)
                _add(columns, name, figure)
    bare = _with_figures(
        run,
        figures,
        lambda _name, figure: msgspec.structs.replace(
            figure, samples=None, blocks=None, percentiles_s=msgspec.UNSET, extent_s=msgspec.UNSET
        ),
    )
    listed, planes_of = [], []
    for name, parts in columns.parts.items():
        planes, width = _planes(np.concatenate(parts))
        listed.append((name, sum(map(len, parts)), width))
        planes_of.append(planes)
    raw = msgspec.json.encode(document.values_of(bare))
    body = lzma.compress(b"".join(planes_of), format=lzma.FORMAT_RAW, filters=_FILTERS)
    code = lzma.compress(b"".join(content for _, content in contents)) if contents else b""
    described = _Head(
        run=msgspec.Raw(raw),
        figures=figures,
        columns=listed,
        code=[(digest, len(content)) for digest, content in contents],
        body_bytes=len(body) if contents else 0,
    )
    # Samples are rounded, so the digest is that of the run that a reader gets.
    digest = document.digest(decode(_file(described, body, code)))
    return _file(msgspec.structs.replace(described, digest=digest), body, code)


def _file(described: _Head, body: bytes, code: bytes) -> bytes:
    head = lzma.compress(msgspec.json.encode(described), preset=9 | lzma.PRESET_EXTREME)
    return _MAGIC + len(head).to_bytes(4, "little") + head + body + code


def decode(data: bytes) -> Run:
    """The run of a compact file, without the contents of its code (`code_of`). Errors: DocumentError."""
    head, columns, _ = _parts(data)
    try:
        body = lzma.decompress(columns, format=lzma.FORMAT_RAW, filters=_FILTERS)
    except (lzma.LZMAError, EOFError) as error:
        raise DocumentError(f"it cannot be unpacked ({error})") from None
    reader, start = _Reader({}), 0
    for name, count, width in head.columns:
        reader.columns[name] = _from_planes(body[start : start + count * width], count, width)
        start += count * width
    if unknown := head.figures.keys() - set(_fields()):
        raise DocumentError(f"{min(unknown)[:40]!r} is no figure")
    run = document.decode(bytes(head.run), most_bytes=None)
    return _with_figures(run, head.figures, lambda name, figure: _read(reader, name, figure))


def code_of(data: bytes) -> dict[str, bytes]:
    """The contents of the code in a compact file, by digest. Errors: DocumentError."""
    head, _, together_packed = _parts(data)
    return code_file.unpacked_together(together_packed, head.code) if head.code else {}


def code_digests(data: bytes) -> frozenset[str]:
    """The digests of the code in a compact file, without unpacking it. Errors: DocumentError."""
    head, _, _ = _parts(data)
    return frozenset(digest for digest, _ in head.code)


def read(data: bytes) -> Run:
    """The run of a compact file from elsewhere with its code, checked like any document. Errors: DocumentError."""
    try:
        head, _, _ = _parts(data)
        run = decode(data)
        contents = code_of(data)
    except (LookupError, TypeError, ValueError, OverflowError, AttributeError) as error:
        raise DocumentError(f"it cannot be read as a compact run ({type(error).__name__}: {error})") from None
    if head.digest and document.digest(run) != head.digest:
        raise DocumentError("it was changed since it was written: its digest does not match its facts")
    if contents:
        run = msgspec.structs.replace(run, code=tuple(map(packed, contents.values())))
    return checked(run)


def _parts(data: bytes) -> tuple[_Head, bytes, bytes]:
    """The head, the packed columns and the packed code. Errors: DocumentError."""
    if data[:4] != _MAGIC:
        raise DocumentError("this is no compact run of kernelviz")
    end = 8 + int.from_bytes(data[4:8], "little")
    try:
        head = msgspec.json.decode(lzma.decompress(data[8:end]), type=_Head)
    except (lzma.LZMAError, msgspec.MsgspecError, EOFError) as error:
        raise DocumentError(f"it cannot be unpacked ({error})") from None
    after = end + head.body_bytes if head.body_bytes else len(data)
    return head, data[end:after], data[after:]


def _fields() -> tuple[str, ...]:
    return tuple(name for name in Timing.__struct_fields__ if name not in ("energy", "other_times", "naive"))


def _timing(outcome: Outcome) -> Timing | None:
    return outcome.timing if isinstance(outcome, Failure) else outcome


def _figure(outcome: Outcome, name: str) -> Figure | None:
    figure: Figure | None = getattr(_timing(outcome), name, None)
    return figure


def _with_figures(run: Run, figures: dict[str, list[int]], change: Callable[[str, Figure], Figure]) -> Run:
    """The run with those figures changed, field by field in the order of the results."""
    results = list(run.results)
    for name, indices in figures.items():
        for index in indices:
            result = results[index]
            timing, figure = _timing(result.outcome), _figure(result.outcome, name)
            if timing is None or figure is None:
                raise DocumentError(f"result {index} has no figure {name}")
            timing = msgspec.structs.replace(timing, **{name: change(name, figure)})
            failed = isinstance(result.outcome, Failure)
            outcome = msgspec.structs.replace(result.outcome, timing=timing) if failed else timing
            results[index] = msgspec.structs.replace(result, outcome=outcome)
    return msgspec.structs.replace(run, results=tuple(results))


def _fits(figure: Figure) -> bool:
    """Whether samples and blocks are there, are consistent, and fit into whole numbers."""
    blocks, samples = figure.blocks, figure.samples
    if not blocks or not samples:
        return False
    if (len(blocks) if figure.by_block else sum(b.size for b in blocks)) != len(samples):
        return False
    rounds = {b.round is None for b in blocks}
    values = (*samples, *(figure.percentiles_s or ()), *(figure.extent_s or ()))
    finite = all(np.isfinite(s) and abs(s) * SAMPLE_PER_S < _LARGEST for s in values)
    return finite and len(rounds) == 1 and all(abs(b.started_s) * START_PER_S < _LARGEST for b in blocks)


def _add(columns: _Columns, name: str, figure: Figure) -> None:
    blocks, samples = figure.blocks or (), figure.samples or ()
    # The sum behind a trimmed mean is a whole number of the clock's steps, the mean is not.
    of = _averaged(blocks) if figure.by_block else 1
    steps = np.round(np.array(samples) * of * SAMPLE_PER_S).astype(np.int64)
    middle = int(np.sort(steps)[len(steps) // 2])
    # The clock ticks in steps of 1 to 32 ns, so the distances from the middle have a common divisor.
    divisor = int(np.gcd.reduce(steps - middle)) or 1
    extent = figure.extent_s if isinstance(figure.extent_s, tuple) else None
    kinds = (blocks[0].round is not None) + 2 * figure.by_block + 4 * (extent is not None)
    columns.add(f"{name}.shape", [len(blocks), middle, divisor, kinds])
    if isinstance(figure.percentiles_s, tuple):
        columns.add(f"{name}.percentiles", _differences([round(p * PERCENTILE_PER_S) for p in figure.percentiles_s]))
    if extent is not None:
        columns.add(f"{name}.extent", _differences([round(s * PERCENTILE_PER_S) for s in extent]))
    columns.add(f"{name}.sizes", _differences([b.size for b in blocks]))
    columns.add(f"{name}.samples", (steps - middle) // divisor)
    columns.add(f"{name}.starts", _differences([round(b.started_s * START_PER_S) for b in blocks]))
    columns.add(f"{name}.clocks", _differences(_clocks(blocks)))
    if blocks[0].round is not None:
        columns.add(f"{name}.rounds", _differences([b.round or 0 for b in blocks]))


def _read(reader: _Reader, name: str, figure: Figure) -> Figure:
    count, middle, divisor, kinds = map(int, reader.take(f"{name}.shape", 4))
    has_rounds, by_block, has_extent = kinds % 2, kinds // 2 % 2, kinds // 4
    percentiles = np.cumsum(reader.take(f"{name}.percentiles", 3)) / PERCENTILE_PER_S if by_block else None
    extent = np.cumsum(reader.take(f"{name}.extent", 3)) / PERCENTILE_PER_S if has_extent else None
    sizes, starts, clocks = (
        np.cumsum(reader.take(f"{name}.{kind}", count)).tolist() for kind in ("sizes", "starts", "clocks")
    )
    rounds: list[int | None] = (
        np.cumsum(reader.take(f"{name}.rounds", count)).tolist() if has_rounds else [None] * count
    )
    steps = reader.take(f"{name}.samples", count if by_block else sum(sizes)) * divisor + middle
    blocks = tuple(
        Block(size=size, started_s=start / START_PER_S, clock_hz=clock / CLOCK_PER_HZ if clock else None, round=number)
        for size, start, clock, number in zip(sizes, starts, clocks, rounds, strict=True)
    )
    return msgspec.structs.replace(
        figure,
        samples=tuple((steps / (_averaged(blocks) if by_block else 1) / SAMPLE_PER_S).tolist()),
        percentiles_s=msgspec.UNSET if percentiles is None else tuple(percentiles.tolist()),
        extent_s=msgspec.UNSET if extent is None else tuple(extent.tolist()),
        blocks=blocks,
    )


def _clocks(blocks: Sequence[Block]) -> list[int]:
    """The clocks of blocks in steps; 0 for an unknown one, because a clock is positive.

    A block that is slow, and so is counted in the measurement's quality, stays slow, and no other becomes slow.

    >>> _clocks([Block(size=1, started_s=0.0, clock_hz=c) for c in (1976.4e6, 1956.7e6, 1956.4e6, None)])
    [1976, 1957, 1956, 0]
    """
    steps, first_hz = [], 0.0
    for clock_hz in (b.clock_hz for b in blocks):
        step = round((clock_hz or 0.0) * CLOCK_PER_HZ)
        if clock_hz:
            first_hz = first_hz or clock_hz
            slow = is_slow(clock_hz, first_hz)
            if slow != is_slow(step / CLOCK_PER_HZ, round(first_hz * CLOCK_PER_HZ) / CLOCK_PER_HZ):
                step += -1 if slow else 1
        steps.append(step)
    return steps


def _averaged(blocks: Sequence[Block]) -> Ints:
    """Of how many samples the trimmed mean of each block is."""
    return np.array([b.size - 2 * cut_at_each_end(b.size) for b in blocks])


def _differences(values: list[int]) -> Ints:
    """The first value and the distance of each other one from the one before it."""
    whole: Ints = np.asarray(values, dtype=np.int64)
    whole[1:] -= whole[:-1].copy()
    return whole


def _planes(values: Ints) -> tuple[bytes, int]:
    """The values as planes of bytes, the lowest bytes first, and their number. Negative values are odd, positive ones even."""
    unsigned = np.where(values >= 0, 2 * values, -2 * values - 1).astype("<u8")
    width = max(1, (int(unsigned.max(initial=0)).bit_length() + 7) // 8)
    return unsigned.view(np.uint8).reshape(-1, 8)[:, :width].T.tobytes(), width


def _from_planes(data: bytes, count: int, width: int) -> Ints:
    if len(data) != count * width or not 1 <= width <= 8:
        raise DocumentError("a column is too short")
    table = np.zeros((count, 8), dtype=np.uint8)
    table[:, :width] = np.frombuffer(data, dtype=np.uint8).reshape(width, count).T
    unsigned = table.reshape(-1).view("<u8").astype(np.int64)
    return np.where(unsigned % 2 == 0, unsigned // 2, -(unsigned // 2) - 1)


IMPORT = Import(
    name="kvz",
    label="kernelviz compact run (.kvz)",
    most_bytes=MAX_BYTES,
    packed=True,
    recognises=lambda seen: seen.raw.startswith(_MAGIC),
    decode=lambda raw: (read(raw),),
)
