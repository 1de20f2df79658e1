"""What changed in the source of a case: files, macros and parameters, and the lines of the kernel that were added and removed."""

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Literal

MOST_LINES = 3_000
"""Files with more lines are not compared line by line: the time of that can grow with their square."""
SourceUnknown = Literal["library", "not_captured", "not_here"]
"""Why the source of a case is not known: its kernels come with a library; no code was captured when it was measured; or the
contents are not on this machine, so that only names and digests are known."""
_CONTEXT = 3
_HEADER = (".cuh", ".h", ".hpp")


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A source of a case. `name`: of the file, or with `of_kernel` of the kernel that it is the source of. `text`: None if it is
    not on this machine."""

    name: str
    digest: str
    text: str | None = None
    of_kernel: bool = False

    @property
    def is_header(self) -> bool:
        return self.name.endswith(_HEADER)


@dataclass(frozen=True, slots=True)
class CaseSource:
    """The sources of all kernels of a case. `macros`: those that it was compiled with. `parameters`: its configuration, and what
    the compiler was told besides. `compiled`: the digests of what was made of them. `variant`: the digest of the code of the
    variant. `unknown`: why it has none."""

    kernels: tuple[str, ...] = ()
    files: tuple[SourceFile, ...] = ()
    macros: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, int] = field(default_factory=dict)
    compiled: frozenset[str] = frozenset()
    variant: str | None = None
    unknown: SourceUnknown | None = None


@dataclass(frozen=True, slots=True)
class ValueChange:
    """A macro or a parameter. None: this side does not have it."""

    name: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class MacroLine:
    """A line of a source that reads a macro whose value has changed. `number`: from 1."""

    file: str
    number: int
    text: str


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file that took the place of another one, or the same file with other content. `kernels`: set if the lines are only those
    of these two kernels; the names of the files are empty where a kernel is no part of one. `lines`: a unified diff; None if a
    content is not here or too long to compare."""

    before: str
    after: str
    kernels: tuple[str, str] | None = None
    lines: tuple[str, ...] | None = None

    @property
    def added(self) -> int | None:
        """How many lines were added; None if unknown."""
        return None if self.lines is None else sum(line.startswith("+") for line in self.lines[2:])

    @property
    def removed(self) -> int | None:
        """How many lines were removed; None if unknown."""
        return None if self.lines is None else sum(line.startswith("-") for line in self.lines[2:])


@dataclass(frozen=True, slots=True)
class SourceChanges:
    """What differs between the sources of two cases. `same_files`: every file of both is the same. `macro_lines`: the lines of
    the second source that read one of `macros`. `kernels`: the names of the kernels on both sides if they differ. `included`,
    `dropped`: headers that only the second or only the first has. `same_code`: whether what was compiled is the same;
    `same_variant`: whether the code of the variants is; None if that is not known."""

    files: tuple[FileChange, ...] = ()
    same_files: bool = False
    macros: tuple[ValueChange, ...] = ()
    macro_lines: tuple[MacroLine, ...] = ()
    parameters: tuple[ValueChange, ...] = ()
    kernels: tuple[tuple[str, ...], tuple[str, ...]] | None = None
    included: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    same_code: bool | None = None
    same_variant: bool | None = None
    unknown: SourceUnknown | None = None

    @property
    def added(self) -> int | None:
        """How many lines were added in all; None if some are unknown."""
        return _sum([file.added for file in self.files]) if self.unknown is None else None

    @property
    def removed(self) -> int | None:
        """How many lines were removed in all; None if some are unknown."""
        return _sum([file.removed for file in self.files]) if self.unknown is None else None

    @property
    def same_source(self) -> bool:
        """Whether both cases have the same source, macros and parameters."""
        return self.same_files and not self.macros and not self.parameters and self.kernels is None


def _sum(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def source_changes(before: CaseSource, after: CaseSource) -> SourceChanges:
    """What differs between two cases; `unknown` if the source of either is."""
    unknown = before.unknown or after.unknown
    if unknown is not None:
        return SourceChanges(unknown=unknown)
    first, second = ({f.name: f for f in side.files if f.is_header} for side in (before, after))
    same = {f.digest for f in before.files} == {f.digest for f in after.files}
    other_kernels = set(before.kernels) != set(after.kernels)
    main = _changed([f for f in before.files if not f.is_header], [f for f in after.files if not f.is_header])
    of_kernels = _kernels(before, after) if other_kernels else None
    headers = [_change(first[n], second[n]) for n in first if n in second and first[n].digest != second[n].digest]
    macros = value_changes(before.macros, after.macros)
    # Macros of another file have other meanings, so only those count that both files have.
    common = tuple(v for v in macros if not main or (v.before is not None and v.after is not None))
    return SourceChanges(
        files=(*((of_kernels,) if of_kernels is not None else main), *headers),
        same_files=same,
        macros=common,
        macro_lines=macro_lines(after.files, [value.name for value in common]),
        parameters=value_changes(*_common(before.parameters, after.parameters)),
        same_code=before.compiled == after.compiled if before.compiled and after.compiled else None,
        same_variant=before.variant == after.variant if before.variant and after.variant else None,
        kernels=(before.kernels, after.kernels) if other_kernels else None,
        included=tuple(name for name in second if name not in first),
        dropped=tuple(name for name in first if name not in second),
    )


def _common(before: Mapping[str, int], after: Mapping[str, int]) -> tuple[dict[str, str], dict[str, str]]:
    """The parameters that both sides have. A parameter of 0 is chosen when the variant is bound, so its value is not known."""
    names = [name for name in before if before[name] and after.get(name)]
    return {name: str(before[name]) for name in names}, {name: str(after[name]) for name in names}


def value_changes(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[ValueChange, ...]:
    """The values that differ, in order.

    >>> value_changes({"TILE": "64", "OLD": "1"}, {"TILE": "128", "NEW": "2"})[0]
    ValueChange(name='TILE', before='64', after='128')
    """
    names = dict.fromkeys((*before, *after))
    return tuple(ValueChange(n, before.get(n), after.get(n)) for n in names if before.get(n) != after.get(n))


def compiled_values(configuration: Mapping[str, int], macros: Mapping[str, str]) -> dict[str, str]:
    """The macros that have the name of a parameter, in capitals, and another value: a parameter of 0 can mean that the sizes
    choose its value, or that another idea takes its place.

    >>> compiled_values({"columns": 0, "stages": 4, "group": 0}, {"COLUMNS": "256", "STAGES": "4", "GROUP": "1"})
    {'COLUMNS': '256', 'GROUP': '1'}
    """
    named = {name.upper(): str(value) for name, value in configuration.items()}
    return {name: macros[name] for name, value in named.items() if name in macros and macros[name] != value}


def macro_lines(files: Sequence[SourceFile], names: Sequence[str]) -> tuple[MacroLine, ...]:
    """The lines of these files that have one of these names as a word, those of headers last.

    >>> macro_lines([SourceFile("k.cu", "", "#if WIDE\\nint a;\\n#endif  // WIDER")], ["WIDE"])
    (MacroLine(file='k.cu', number=1, text='#if WIDE'),)
    """
    if not names:
        return ()
    reads_one = re.compile(rf"\b(?:{'|'.join(map(re.escape, names))})\b")
    return tuple(
        MacroLine(file.name, number, line)
        for file in sorted(files, key=lambda f: f.is_header)
        for number, line in enumerate((file.text or "").splitlines(), 1)
        if reads_one.search(line)
    )


def _changed(before: Sequence[SourceFile], after: Sequence[SourceFile]) -> list[FileChange]:
    """The files that differ: those of one name, then the others in their order, each in the place of one that is gone."""
    digests = {f.digest for f in before} & {f.digest for f in after}
    first = {f.name: f for f in before if f.digest not in digests}
    second = {f.name: f for f in after if f.digest not in digests}
    pairs = [(first.pop(name), second.pop(name)) for name in [n for n in first if n in second]]
    gone, new = list(first.values()), list(second.values())
    nothing = SourceFile("", "", "")
    pairs += zip_longest(gone, new, fillvalue=nothing)
    return [_change(a, b) for a, b in pairs]


def _change(before: SourceFile, after: SourceFile) -> FileChange:
    lines = _diff(before.text, after.text, before.name, after.name)
    if before.of_kernel and after.of_kernel:
        return FileChange("", "", (before.name, after.name), lines)
    return FileChange(before.name, after.name, lines=lines)


def _kernels(before: CaseSource, after: CaseSource) -> FileChange | None:
    """The lines of the two kernels, if each case launches one that the other does not, and both can be read."""
    gone = [k for k in before.kernels if k not in after.kernels]
    new = [k for k in after.kernels if k not in before.kernels]
    if len(gone) != 1 or len(new) != 1:
        return None
    first, second = _with_kernel(before.files, gone[0]), _with_kernel(after.files, new[0])
    if first is None or second is None:
        return None
    lines = _diff(first[1], second[1], gone[0], new[0])
    return FileChange(first[0], second[0], (gone[0], new[0]), lines)


def _with_kernel(files: Sequence[SourceFile], kernel: str) -> tuple[str, str] | None:
    """The name of the file with that kernel, and the text of the kernel."""
    for file in files:
        text = None if file.text is None or file.is_header else kernel_of(file.text, kernel)
        if text is not None:
            return file.name, text
    return None


def _diff(before: str | None, after: str | None, name: str, other: str) -> tuple[str, ...] | None:
    if before is None or after is None:
        return None
    first, second = before.splitlines(), after.splitlines()
    if max(len(first), len(second)) > MOST_LINES:
        return None
    lines = difflib.unified_diff(first, second, name or "nothing", other or "nothing", n=_CONTEXT, lineterm="")
    return tuple(lines)


_NAME = re.compile(r"\w+")


def kernel_of(source: str, kernel: str) -> str | None:
    """The text of a CUDA C++ kernel in its file, from the line of ``__global__`` to its last brace, with the comment lines
    before it; None if there is none of that name. The braces of comments and strings count, so it is for showing only.

    >>> print(kernel_of("int a;\\n// adds\\n__global__ void add(int *x) {\\n  if (x) { x[0]++; }\\n}\\nint b;\\n", "add"))
    // adds
    __global__ void add(int *x) {
      if (x) { x[0]++; }
    }
    """
    if _NAME.fullmatch(kernel) is None:
        return None
    lines = source.splitlines()
    for number, line in enumerate(lines):
        if "__global__" not in line:
            continue
        head = "\n".join(lines[number : number + 4]).partition("{")[0]
        if re.search(rf"\b{kernel}\s*\(", head) is None:
            continue
        start, depth, opened = number, 0, False
        while start > 0 and lines[start - 1].lstrip().startswith(("//", "template")):
            start -= 1
        for end in range(number, len(lines)):
            depth += lines[end].count("{") - lines[end].count("}")
            opened = opened or "{" in lines[end]
            if opened and depth <= 0:
                return "\n".join(lines[start : end + 1])
    return None
