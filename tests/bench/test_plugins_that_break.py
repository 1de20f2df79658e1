"""A plug-in of the server that breaks while the server runs costs nobody else anything, and comes back when it is whole."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from kernelviz.bench import Bench
from kernelviz.bench.availability import Choice
from kernelviz.core.errors import BadField
from kernelviz.core.request import RunRequest
from kernelviz.hardware.discovery import discover
from kernelviz.ops import catalogue
from kernelviz.store import Store
from kernelviz.worker.protocol import VariantFacts


class Described:
    """Stands for the process that imports the files: each line of a file names a variant of op `add`."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, ...]] = []
        self.slow = threading.Event()
        self.go_on = threading.Event()
        self.busy = False

    def __call__(self, files: Sequence[str]) -> tuple[VariantFacts, ...]:
        self.asked.append(tuple(files))
        names: list[str] = []
        for file in files:
            names += Path(file).read_text().split() if Path(file).exists() else ["broken"]
        if "slow" in names:
            self.slow.set()
            self.go_on.wait()
        if "broken" in names or self.busy:
            raise BadField("plug-in", ", ".join(files), "importing it raised SyntaxError")
        return tuple(VariantFacts(op="add", name=n, backend="torch", summary="", digest=n) for n in names)


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def described() -> Described:
    return Described()


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    one, two = tmp_path / "one.py", tmp_path / "two.py"
    one.write_text("mine")
    two.write_text("yours")
    return one, two


def made(described: Described, files: Sequence[Path], clock: Clock | None = None) -> Choice:
    return Choice(tuple(map(str, files)), describe=described, clock=clock or Clock())


def offered(choice: Choice) -> set[str]:
    ops, _ = choice.shared()
    return {v.name for v in ops["add"].variants} - {v.name for v in catalogue()["add"].variants}


def test_each_is_asked_once(described: Described, files: tuple[Path, Path]) -> None:
    choice = made(described, files)
    for _ in range(3):
        assert offered(choice) == {"mine", "yours"}
        assert choice.plugins == tuple(map(str, files))
        assert choice.ops(choice.plugins).keys() == catalogue().keys()
    assert described.asked == [(str(f),) for f in files]


@pytest.mark.parametrize("how", ["saved half", "deleted"])
def test_one_that_breaks_is_left_out_until_it_is_whole(
    described: Described, files: tuple[Path, Path], how: str
) -> None:
    choice = made(described, files)
    if how == "deleted":
        files[0].unlink()
    else:
        files[0].write_text("mine broken")
    for _ in range(3):
        assert offered(choice) == {"yours"}
        assert choice.plugins == (str(files[1]),)
        assert [str(files[0]) in problem for problem in choice.problems] == [True]
        with pytest.raises(BadField, match="SyntaxError"):
            choice.ops((str(files[0]),))
    assert len(described.asked) == 3, "it is asked once what is wrong, not by each page"
    files[0].write_text("mine")
    assert offered(choice) == {"mine", "yours"}
    assert choice.problems == ()


def test_what_is_wrong_elsewhere_is_asked_again_after_a_while(described: Described, files: tuple[Path, Path]) -> None:
    """The fault may lie in a file that the plug-in imports, or in a machine too busy to import it in time."""
    clock = Clock()
    described.busy = True
    choice = made(described, files, clock)
    assert (offered(choice), len(choice.problems), len(described.asked)) == (set(), 2, 2)
    described.busy = False
    clock.now_s = 9.0
    assert (offered(choice), len(described.asked)) == (set(), 2)
    clock.now_s = 11.0
    assert offered(choice) == {"mine", "yours"}


def test_of_two_of_one_name_the_first_stays(described: Described, files: tuple[Path, Path]) -> None:
    choice = made(described, files)
    files[1].write_text("yours mine")
    assert (offered(choice), choice.plugins) == ({"mine"}, (str(files[0]),))
    assert [("rename" in p, str(files[1]) in p) for p in choice.problems] == [(True, True)]


def test_those_of_a_command_are_told_what_is_wrong(
    described: Described, files: tuple[Path, Path], tmp_path: Path
) -> None:
    choice = made(described, files)
    other = tmp_path / "other.py"
    other.write_text("theirs")
    ops = choice.ops((*choice.plugins, str(other)))
    assert [v.name for v in ops["add"].variants[-3:]] == ["mine", "yours", "theirs"]
    assert offered(choice) == {"mine", "yours"}
    other.write_text("mine")
    with pytest.raises(BadField, match="rename"):
        choice.ops((*choice.plugins, str(other)))


def test_a_slow_one_keeps_nobody_from_those_that_are_known(
    described: Described, files: tuple[Path, Path], tmp_path: Path
) -> None:
    choice = made(described, files)
    slow = tmp_path / "slow.py"
    slow.write_text("slow")
    waits = threading.Thread(target=choice.ops, args=((str(slow),),))
    waits.start()
    found: list[set[str]] = []
    try:
        assert described.slow.wait(10)
        asks = threading.Thread(target=lambda: found.append(offered(choice)), daemon=True)
        asks.start()
        asks.join(10)
        assert found == [{"mine", "yours"}]
    finally:
        described.go_on.set()
        waits.join(10)


PLUGIN = """
from kernelviz.ops import variant

@variant(op="add", backend="torch")
def mine(x_N, y_N):
    'My own addition.'
    raise AssertionError
"""


def test_the_other_ops_can_still_be_planned(tmp_path: Path) -> None:
    """With the process that really imports it."""
    file = tmp_path / "mine.py"
    file.write_text(PLUGIN)
    cpu = next(d for d in discover() if d.id == "cpu")
    bench = Bench(Store.open(tmp_path), (cpu,), choice=Choice((str(file),)), lock_directory=tmp_path)
    try:
        assert "mine" in {v.name for v in bench.ops()["add"].variants}
        assert bench.plan(RunRequest(op="add", sizes={"n": "4"}, variants=("mine",), device="cpu")).plugins == (
            str(file),
        )
        file.write_text(PLUGIN + "half(")
        assert "mine" not in {v.name for v in bench.ops()["add"].variants}
        plan = bench.plan(RunRequest(op="softmax", sizes={"m": "4", "n": "4"}, variants=("torch_eager",), device="cpu"))
        assert plan.plugins == (), "the worker would not start with it"
        assert "was never closed" in str(bench.health()["plugins"])
        file.unlink()
        assert set(bench.ops()) == set(catalogue())
        assert "no such file" in str(bench.health()["plugins"])
    finally:
        bench.close()
