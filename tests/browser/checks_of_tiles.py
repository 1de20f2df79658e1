"""Which tiles and winners of the page Bench do not follow from its table. Each check says why its two sides have to agree."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

from checks_of_cases import pairs_of, verdict_of
from screen import Cell, Line, Screen, Size


def _geometric(values: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def _excluded(screen: Screen) -> set[str]:
    return {line.variant for line in screen.lines if re.match(r"✕ (wrong|impossible)", line.result)}


def tile_best_overall(screen: Screen) -> Iterator[str]:
    """The best variant overall has the lowest geometric mean of the times in the table, over the sizes at which all variants that
    cover the most sizes have one."""
    value, basis = screen.tiles.get("Best overall", ("", ""))
    if not basis.startswith("lowest geometric mean time"):
        return
    timed: dict[str, list[Line]] = {}
    for line in screen.lines:
        if line.timed and line.variant not in _excluded(screen):
            timed.setdefault(line.variant, []).append(line)
    if not timed:
        return
    most = max(map(len, timed.values()))
    shown = {
        name: {o.size: o.time_s for o in of if o.time_s is not None} for name, of in timed.items() if len(of) == most
    }
    common = set.intersection(*(set(times) for times in shown.values()))
    count = int(re.findall(r"(\d+)(?: of \d+)? sizes?", basis)[0])
    if count != len(common):
        yield f"tile: {value}, {basis}; the table has times of all variants at {len(common)} sizes"
    elif common:
        means = {name: _geometric([times[size] for size in common]) for name, times in shown.items()}
        best = min(means, key=lambda name: means[name])
        if value not in means or means[value] > means[best] * (1 + 1e-4):
            yield f"tile: {value} is the best overall; by the table it is {best} ({means})"


def tile_speed_up(screen: Screen) -> Iterator[str]:
    """The speed-up of the best variant is the geometric mean of its ratios in the table. Where the table has no ratio, that of
    the two times stands for it, within their intervals."""
    label = next((name for name in screen.tiles if name.startswith("Speed-up over ")), None)
    best = _best(screen)
    if label is None or best is None or not screen.lines or best == screen.baseline:
        return
    value, basis = screen.tiles[label]
    unclear = re.findall(r"\d+|there", basis.partition(";")[2])
    own = [(line, base) for line, base in pairs_of(screen) if line.variant == best]
    undecided = sum(verdict_of(line.versus).kind == "unclear" for line, _ in own)
    if sum(1 if count == "there" else int(count) for count in unclear) != undecided and "×" in value:
        yield f"tile: {basis}; the table has {undecided} unclear sizes of {best}"
    if not value.endswith("×"):
        return
    if screen.by_size_quantity == "speed-up":
        factors = [dot.value for dot in screen.by_size if dot.variant == best]
        if factors and abs(_geometric(factors) - float(value[:-1])) > 0.0051 + 1e-3 * float(value[:-1]):
            yield f"tile: {value}; the chart of speed-ups has a mean of {_geometric(factors):.4g}"
    logs, slack = [], 0.0
    for line, base in own:
        verdict = verdict_of(line.versus)
        if verdict.ratio is not None:
            logs.append(-math.log(verdict.ratio))
            slack += 0.005 / min(verdict.ratio, 1 / verdict.ratio)
        elif line.time_s is not None and base.time_s is not None:
            logs.append(math.log(base.time_s / line.time_s))
            slack += 0.01 + 1.5 * math.hypot(line.width or 1.0, base.width or 1.0)
    if logs and len(logs) == int((re.findall(r"(\d+) sizes?", basis) or ["0"])[0]):
        mean = sum(logs) / len(logs)
        if abs(mean - math.log(max(float(value[:-1]), 0.001))) > slack / len(logs) + 0.006 / max(
            float(value[:-1]), 0.005
        ):
            yield f"tile: {value} ({basis}); the table has a mean of {math.exp(mean):.3g}"


def _best(screen: Screen) -> str | None:
    return (screen.tiles.get("Best overall") or screen.tiles.get("Fastest") or (None,))[0]


def _percent(text: str) -> float | None:
    found = re.search(r"([\d.]+) %", text)
    return float(found[1]) / 100 if found and "<" not in text else None


def tile_share_and_worst_size(screen: Screen) -> Iterator[str]:
    """The share of the roof is the mean of the best variant's shares in the table, and the worst size has the lowest of them."""
    value, basis = screen.tiles.get("Share of the measured roof", ("", ""))
    shares = {
        line.size: line.share for line in screen.lines if line.variant == _best(screen) and line.share is not None
    }
    said = _percent(value)
    if said is None or not screen.lines:
        return
    if not shares:
        yield f"tile: {value}; the table has no share of {_best(screen)}"
        return
    mean = sum(shares.values()) / len(shares)
    if abs(said - mean) > (0.0051 if mean > 0.0094 else 0.00051):
        yield f"tile: {value}; the table has a mean of {mean:.2%}"
    largest = _percent(basis.partition("best ")[2])
    if largest is not None and abs(largest - max(shares.values())) > (0.0051 if largest > 0.0094 else 0.00051):
        yield f"tile: {basis}; the largest share in the table is {max(shares.values()):.2%}"
    lowest = _percent(screen.tiles.get("Worst size", ("", ""))[1])
    if lowest is not None and abs(lowest - min(shares.values())) > (0.0051 if lowest > 0.0094 else 0.00051):
        yield f"tile: worst size {screen.tiles['Worst size']}; the lowest share in the table is {min(shares.values()):.2%}"


def outcomes_by_table(screen: Screen) -> dict[Size, Cell]:
    """Who is the fastest at each size, as far as the table alone decides it: with one variant besides the baseline."""
    cells: dict[Size, Cell] = {}
    sizes: dict[Size, list[tuple[Line, Line]]] = {}
    for line, base in pairs_of(screen):
        sizes.setdefault(line.size, []).append((line, base))
    for size, pairs in sizes.items():
        if len(pairs) != 1 or pairs[0][1].failed or len([o for o in screen.lines if o.size == size]) != 2:
            continue
        line, base = pairs[0]
        kind = verdict_of(line.versus).kind
        winner = line.variant if kind == "faster" else base.variant
        heading = {
            "same": f"{line.variant} and {base.variant} are the fastest (statistical tie)",
            "unclear": f"{line.variant} may be the fastest; unclear against {base.variant}",
        }.get(kind, f"{winner} is the fastest")
        if kind:
            cells[size] = Cell(size, heading, "")
    return cells


def tile_wins_most_sizes(screen: Screen) -> Iterator[str]:
    """Sizes that are won, tied and unclear are counted from the view of winners, or from the verdicts of two variants."""
    value, basis = screen.tiles.get("Most wins", ("", ""))
    cells = [c for c in screen.winners if c.outcome != "none"] or list(outcomes_by_table(screen).values())
    problems = len({line.size for line in screen.lines if line.timed})
    if not value or not screen.lines or len(cells) != problems or value.endswith("variants") or ", " in value:
        return
    if value == "undecided":
        if any(cell.outcome in ("won", "tied") for cell in cells):
            yield f"tile: {value}, {basis}; the sizes are {[c.heading for c in cells]}"
        return
    for word, outcome in (("alone", "won"), ("tied", "tied"), ("unclear", "unclear")):
        found = re.search(rf"{word} at (none|\d+)", basis)
        said = 0 if found is None or found[1] == "none" else int(found[1])
        counted = sum(cell.outcome == outcome and value in cell.names for cell in cells)
        if said != counted:
            yield f"tile: {value} {basis}; {outcome} at {counted}: {[c.heading for c in cells]}"
    wins = {name: sum(c.outcome == "won" and name in c.names for c in cells) for c in cells for name in c.names}
    if max(wins.values()) > wins.get(value, 0):
        yield f"tile: {value} wins the most sizes; the sizes are {[c.heading for c in cells]}"


def winners_follow_from_the_verdicts(screen: Screen) -> Iterator[str]:
    """Who is fastest at a size is decided by the same verdicts as in the table: a winner beats the baseline, and a tie with the
    baseline is "same" in the table."""
    table = {(line.variant, line.size): verdict_of(line.versus).kind for line, _ in pairs_of(screen)}
    for cell in screen.winners:
        for name in cell.names:
            kind = table.get((name, cell.size))
            others = [v for (n, size), v in table.items() if size == cell.size and n != name]
            wrong = (
                (cell.outcome == "won" and name != screen.baseline and kind not in (None, "faster"))
                or (cell.outcome == "won" and name == screen.baseline and any(v not in ("slower", "") for v in others))
                or (
                    cell.outcome == "tied"
                    and len(cell.names) == 2
                    and screen.baseline in cell.names
                    and name != screen.baseline
                    and kind not in (None, "same")
                )
                or (
                    cell.outcome == "unclear"
                    and len(cell.names) == 2
                    and screen.baseline in cell.names
                    and name != screen.baseline
                    and kind not in (None, "unclear")
                )
            )
            if wrong:
                yield f"{cell.heading} at {dict(sorted(cell.size))}; the table says {name}: {kind}, others: {others}"


def sentences_follow_from_the_winners(screen: Screen) -> Iterator[str]:
    """The sentences below the view of winners count its cells."""
    said = next((s for s in screen.sentences if re.match(r"Of \d+ sizes: ", s)), None)
    if said is None or not screen.winners:
        return
    if int(said.split()[1]) != len(screen.winners):
        yield f"{said!r}, and the view has {len(screen.winners)} cells"
    for word, outcome in (("several are tied at", "tied"), ("it is unclear at", "unclear")):
        found = re.search(rf"{word} (\d+)", said)
        counted = sum(cell.outcome == outcome for cell in screen.winners)
        if (int(found[1]) if found else 0) != counted:
            yield f"{said!r}, and {counted} cells are {outcome}"
    for name in {name for cell in screen.winners for name in cell.names}:
        found = re.search(rf"(?:: |, ){re.escape(name)} is fastest at (\d+)", said)
        counted = sum(cell.outcome == "won" and cell.names == [name] for cell in screen.winners)
        if (int(found[1]) if found else 0) != counted:
            yield f"{said!r}, and {name} wins {counted} cells"
