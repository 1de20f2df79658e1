"""Sizes as a person types them: ``4096``, ``4k``, ``1024,2048``, ``2^10..2^24``, ``128..1024:128``, ``2^27/n``.

A suffix is a power of 1024, as in "a context of 4k" or "1M tokens": k or K is 2^10, M is 2^20 and G is 2^30.
"""

import ast
import itertools
import operator
import re
from collections.abc import Callable, Mapping, Sequence

from kernelviz.core.errors import BadSize, UnknownName

MAX_PROBLEMS = 2048
"""The largest number of problems of a plan. A larger number is almost certainly a typing mistake."""
_LARGEST = 2**48
OFFSET_AXES = frozenset({"o"})
"""Axes that count the bytes by which the tensors of a problem begin after an aligned address. Their size may be 0, and is 0 where
a problem does not state it, as in every document from before there were such axes."""

_REMEDY = (
    "write a whole number (4096, 4k, 2^20), a list (64,128), a sweep (2^10..2^24 or 128..1024:128) "
    "or an expression of other axes (2^27/n)"
)
_SUFFIXES = {"k": 2**10, "K": 2**10, "M": 2**20, "G": 2**30}
_SUFFIXED = re.compile(r"(?<!\w)(?<!(?<!\.)\.)(\d{1,15})([kKMG])(?!\w)")
_ITSELF = "an axis cannot depend on itself"

_BINARY: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.floordiv,
    ast.FloorDiv: operator.floordiv,
}


def expand(axes: tuple[str, ...], texts: Mapping[str, str]) -> list[dict[str, int]]:
    """All combinations of sizes that `texts` (one expression for each axis) describes. The first axis varies slowest.

    Errors: BadSize for text that cannot be parsed or a size below 1 (an offset: below 0), UnknownName for an axis that the op
    does not have.

    >>> expand(("n",), {"n": "2^10..2^12"})
    [{'n': 1024}, {'n': 2048}, {'n': 4096}]
    >>> expand(("m", "n"), {"n": "64,128", "m": "2^10/n"})
    [{'m': 16, 'n': 64}, {'m': 8, 'n': 128}]
    """
    for axis in texts:
        if axis not in axes:
            raise UnknownName("axis", axis, axes)
    for axis in axes:
        if not texts.get(axis, "").strip():
            raise BadSize(axis, texts.get(axis, ""), _REMEDY)
    independent = [a for a in axes if not _names(a, texts[a])]
    dependent = [a for a in axes if a not in independent]
    combined: list[dict[str, int]] = [{}]
    for axis in independent:
        listed = values(axis, texts[axis])
        if len(combined) * len(listed) > MAX_PROBLEMS:
            raise BadSize(axis, texts[axis], f"a plan has at most {MAX_PROBLEMS} problems; sweep fewer sizes")
        combined = [{**sizes, axis: value} for sizes in combined for value in listed]
    for sizes in combined:
        left = list(dependent)
        while left:
            ready = [a for a in left if _names(a, texts[a]) <= sizes.keys()]
            if not ready:
                unknown = sorted(_names(left[0], texts[left[0]]) - set(axes))
                remedy = f"{unknown[0]!r} is not an axis (axes: {', '.join(axes)}); {_REMEDY}" if unknown else _ITSELF
                raise BadSize(left[0], texts[left[0]], remedy)
            for axis in ready:
                sizes[axis] = _size(axis, texts[axis], sizes)
                left.remove(axis)
    return [{axis: sizes[axis] for axis in axes} for sizes in combined]


def values(axis: str, text: str) -> list[int]:
    """The sizes of one axis in the order of the text, without duplicates.

    >>> values("n", "128..512:128"), values("n", "3, 2^4")
    ([128, 256, 384, 512], [3, 16])
    """
    listed = text.split(",")
    if len(listed) > 1 and not all(part.strip() for part in listed):
        raise BadSize(axis, text.strip(), "a size is missing beside a comma; write a list as 64,128")
    parts = (_sweep(axis, part) if ".." in part else [_size(axis, part, {})] for part in listed)
    return list(dict.fromkeys(itertools.chain.from_iterable(parts)))


def without_suffixes(text: str) -> str:
    """The text with each number and its suffix as one number.

    >>> without_suffixes("4k, 1M"), without_suffixes("2^10..64K"), without_suffixes("2^27/k")
    ('4096, 1048576', '2^10..65536', '2^27/k')
    """
    return _SUFFIXED.sub(lambda match: str(int(match[1]) * _SUFFIXES[match[2]]), text)


def is_list(text: str) -> bool:
    """Whether the text consists of whole numbers only, with or without suffixes.

    >>> is_list("64, 4k"), is_list("2^10"), is_list("64..128")
    (True, False, False)
    """
    return without_suffixes(text).replace(",", "").replace(" ", "").isdigit()


def _sweep(axis: str, text: str) -> list[int]:
    ends, _, step = text.partition(":")
    low_text, _, high_text = ends.partition("..")
    low, high = (_checked(axis, text, _evaluate(axis, end, {})) for end in (low_text, high_text))
    if high < low:
        raise BadSize(axis, text.strip(), "a sweep starts at its smallest size and ends at its largest")
    if step.strip():
        width = _checked(axis, text, _evaluate(axis, step, {}))
        if (high - low) // width >= MAX_PROBLEMS:
            raise BadSize(axis, text.strip(), f"a plan has at most {MAX_PROBLEMS} problems; use a larger step")
        return list(range(low, high + 1, width))
    if low == 0:
        raise BadSize(axis, text.strip(), "a sweep without a step doubles, so it cannot start at 0; write 0..64:4")
    return [low << doublings for doublings in range((high // low).bit_length())]


def _parse(axis: str, text: str) -> ast.expr:
    if len(text) > 200:
        raise BadSize(axis, text[:40] + "…", _REMEDY)
    try:
        return ast.parse(without_suffixes(text.strip()).replace("^", "**"), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise BadSize(axis, text.strip(), _REMEDY) from None


def _names(axis: str, text: str) -> set[str]:
    if ".." in text or "," in text:
        return set()
    return {node.id for node in ast.walk(_parse(axis, text)) if isinstance(node, ast.Name)}


def _evaluate(axis: str, text: str, sizes: Mapping[str, int]) -> int:
    def value(node: ast.expr) -> int:
        match node:
            case ast.Constant(value=int(number)) if not isinstance(number, bool):
                return number
            case ast.Name(id=name) if name in sizes:
                return sizes[name]
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -value(operand)
            case ast.BinOp(left=left, op=ast.Pow(), right=right):
                base, exponent = value(left), value(right)
                if not (0 <= exponent <= 48 and 0 <= base <= 2**24):
                    raise BadSize(axis, text.strip(), "powers go up to 2^48")
                return int(base**exponent)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
                try:
                    return _BINARY[type(op)](value(left), value(right))
                except ZeroDivisionError:
                    raise BadSize(axis, text.strip(), "the expression divides by zero") from None
            case _:
                raise BadSize(axis, text.strip(), _REMEDY)

    return value(_parse(axis, text))


def _size(axis: str, text: str, sizes: Mapping[str, int]) -> int:
    return _checked(axis, text, _evaluate(axis, text, sizes))


def _checked(axis: str, text: str, value: int) -> int:
    least = least_size(axis)
    if not least <= value <= _LARGEST:
        raise BadSize(axis, text.strip(), f"a size must be from {least} to 2^48, but this is {value}")
    return value


def least_size(axis: str) -> int:
    """The smallest size of an axis.

    >>> least_size("n"), least_size("o")
    (1, 0)
    """
    return 0 if axis in OFFSET_AXES else 1


def without_unused_offsets(problems: Sequence[Mapping[str, int]]) -> list[dict[str, int]]:
    """The sizes of the problems of a plan, without an offset that is 0 in all of them: so they are the same as those of a plan
    from before there was that axis.

    >>> without_unused_offsets([{"n": 4, "o": 0}]), without_unused_offsets([{"n": 4, "o": 0}, {"n": 4, "o": 8}])
    ([{'n': 4}], [{'n': 4, 'o': 0}, {'n': 4, 'o': 8}])
    """
    unused = {axis for axis in OFFSET_AXES if not any(sizes.get(axis) for sizes in problems)}
    return [{axis: size for axis, size in sizes.items() if axis not in unused} for sizes in problems]


def written(axes: tuple[str, ...], problems: Sequence[Mapping[str, int]]) -> dict[str, str] | None:
    """Texts that `expand` turns into exactly these sizes, or None if there are none. An offset that is not stated is 0.

    >>> written(("m", "n"), expand(("m", "n"), {"m": "2^20/n", "n": "2^8..2^12"}))
    {'m': '2^20/n', 'n': '2^8..2^12'}
    >>> written(("m", "n"), [{"m": 3, "n": 64}, {"m": 3, "n": 100}])
    {'m': '3', 'n': '64,100'}
    >>> stages = {"h": "56,28,14", "w": "h", "c": "3584/h", "k": "4*c"}
    >>> written(tuple(stages), expand(tuple(stages), stages))
    {'h': '56,28,14', 'w': 'h', 'c': '3584/h', 'k': '14336/h'}
    """
    wanted = [{a: p.get(a, 0) if a in OFFSET_AXES else p[a] for a in axes} for p in problems]
    listed = {a: _listed(list(dict.fromkeys(p[a] for p in wanted))) for a in axes}
    candidates = [listed]
    for axis in axes:
        for other in axes:
            if other == axis:
                continue
            if all(p[axis] == p[other] for p in wanted):
                candidates.append({**listed, other: axis})
            product = wanted[0][axis] * wanted[0][other] if wanted else 0
            if all(p[axis] * p[other] == product for p in wanted):
                candidates.append({**listed, axis: f"{_number(product)}/{other}"})
        tied = [a for a in axes if all(p[a] == p[axis] for p in wanted)]
        candidates.append({**listed, **{a: axis for a in tied if a != axis}})
    candidates += [{a: _by(axis, a, wanted) or listed[a] for a in axes} for axis in axes]
    return next((texts for texts in candidates if _means(axes, texts, wanted)), None)


def _by(axis: str, other: str, problems: Sequence[Mapping[str, int]]) -> str | None:
    """The size of `other` as an expression of that of `axis`: equal, a multiple, a part or a constant over it; None if it is
    none of these, or is always the same, or if a size of `axis` is 0."""
    pairs = [(p[axis], p[other]) for p in problems]
    first, size = pairs[0] if pairs else (1, 1)
    if other == axis or len({b for _, b in pairs}) == 1 or not all(a for a, _ in pairs):
        return None
    if all(b * first == a * size for a, b in pairs):
        if size == first:
            return axis
        if size % first == 0:
            return f"{size // first}*{axis}"
        return f"{axis}/{first // size}" if first % size == 0 else None
    return f"{_number(first * size)}/{axis}" if all(a * b == first * size for a, b in pairs) else None


def _means(axes: tuple[str, ...], texts: Mapping[str, str], wanted: Sequence[Mapping[str, int]]) -> bool:
    try:
        return expand(axes, texts) == list(wanted)
    except (BadSize, UnknownName):
        return False


def _number(value: int) -> str:
    return f"2^{value.bit_length() - 1}" if value >= 256 and value & (value - 1) == 0 else str(value)


def _listed(sizes: Sequence[int]) -> str:
    doubling = len(sizes) > 2 and all(b == 2 * a for a, b in itertools.pairwise(sizes))
    return f"{_number(sizes[0])}..{_number(sizes[-1])}" if doubling else ",".join(map(str, sizes))
