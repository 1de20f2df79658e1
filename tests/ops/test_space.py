"""Spaces of variants: what may be tuned, what makes sense for a problem, what is drawn."""

from __future__ import annotations

import dataclasses

import pytest

from kernelviz.core.errors import BadField, UnknownName
from kernelviz.core.problem import Problem
from kernelviz.core.reasons import NotAdmitted
from kernelviz.ops import Op, Variant, catalogue, variant
from kernelviz.ops.catalog.space import draw, tuned_keys

SPACE = {"block": (64, 128, 256, 512), "warps": (4, 8)}


def admits(configuration, problem) -> str | None:  # type: ignore[no-untyped-def]
    return "too large a block" if configuration["block"] > problem.sizes["n"] else None


@variant(op="add", backend="torch", space=SPACE, admits=admits)
def tunable(x, y, *, block=64, warps=4):  # type: ignore[no-untyped-def]
    """Something to tune."""
    return lambda: (block, warps)


@variant(op="add", backend="torch")
def plain(x, y):  # type: ignore[no-untyped-def]
    """Nothing to tune."""
    return lambda: None


def op(*more: Variant) -> Op:
    return dataclasses.replace(catalogue()["add"], variants=(tunable, plain, *more), baseline="plain")


def problem(n: int = 4096) -> Problem:
    return Problem(op="add", sizes={"n": n}, dtype="fp32")


def test_a_name_gives_the_variant_with_its_values_bound() -> None:
    found = op().variant_named("tunable[warps=8,block=256]")
    assert found.name == "tunable[block=256,warps=8]", "in the order of the space"
    assert found.keywords(problem()) == {"block": 256, "warps": 8}
    assert found.source_digest() == tunable.source_digest()
    assert op().variant_named("tunable[block=512]").configuration == {"block": 512, "warps": 4}
    assert op().variant_named("tunable").keywords(problem()) == {"block": 64, "warps": 4}
    assert op().variant_named("plain").keywords(problem()) == {}


@pytest.mark.parametrize(
    ("name", "error", "words"),
    [
        ("tunabel[block=64]", UnknownName, "did you mean 'tunable'"),
        ("tunable[blok=64]", UnknownName, "did you mean 'block'"),
        ("tunable[block=65]", BadField, "64, 128, 256, 512"),
        ("plain[block=64]", BadField, "nothing to tune"),
    ],
)
def test_a_bad_name_says_what_is_wrong_with_it(name: str, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        op().variant_named(name)


def test_all_of_a_space_are_drawn_the_default_first() -> None:
    drawn = draw(op(), "tunable", problem())
    assert (len(drawn.configurations), drawn.space, drawn.admitted, drawn.seed) == (8, 8, 8, None)
    assert drawn.configurations[:2] == ({"block": 64, "warps": 4}, {"block": 64, "warps": 8})
    assert draw(op(), "tunable", problem(), 50) == drawn


def test_what_makes_no_sense_is_not_drawn_but_the_default_always_is() -> None:
    small = draw(op(), "tunable", problem(128))
    assert {c["block"] for c in small.configurations} == {64, 128}
    assert (small.space, small.admitted) == (8, 4)
    smallest = draw(op(), "tunable", problem(1))
    assert smallest.configurations == ({"block": 64, "warps": 4},)
    assert op().variant_named("tunable[block=64]").refuses(problem(1)) is None, "the default is always tried"
    refused = op().variant_named("tunable[block=512]").refuses(problem(128))
    assert refused == NotAdmitted(text="too large a block")


def test_a_draw_is_told_by_its_seed() -> None:
    first, again, other = (draw(op(), "tunable", problem(), 4, seed).configurations for seed in (1, 1, 2))
    assert first == again != other
    assert {c[0]["block"] for c in (first, other)} == {64}
    assert draw(op(), "tunable", problem(), 4, 1).seed == 1


@pytest.mark.parametrize(
    ("name", "count", "words"), [("plain", None, "one can tune: tunable"), ("tunable", 1, "at least 2")]
)
def test_what_cannot_be_tuned_is_refused(name: str, count: int | None, words: str) -> None:
    with pytest.raises(BadField, match=words):
        draw(op(), name, problem(), count)


def test_a_plan_that_would_never_end_is_refused() -> None:
    @variant(op="add", backend="torch", space={"a": tuple(range(64)), "b": tuple(range(64))})
    def wide(x, y, *, a=0, b=0):  # type: ignore[no-untyped-def]
        """4096 configurations."""
        return lambda: None

    with pytest.raises(BadField, match="at most 2048: give a number"):
        draw(op(wide), "wide", problem())
    assert len(draw(op(wide), "wide", problem(), 100).configurations) == 100


def test_a_pass_that_takes_fewer_parameters_is_tuned_in_those() -> None:
    def forward(x, *, block=64, warps=4):  # type: ignore[no-untyped-def]
        """Both."""
        return lambda: None

    def backward(x, dy, *, block=64):  # type: ignore[no-untyped-def]
        return lambda: None

    made = variant(op="add", backend="torch", space=SPACE, backward=backward)(forward)
    assert tuned_keys(made) == ("block", "warps")
    assert tuned_keys(made.of_backward()) == ("block",)
    assert made.of_backward().configured({"warps": 8}).keywords(problem()) == {"block": 64}


@pytest.mark.parametrize(
    ("space", "words"),
    [
        ({"tile": (1, 2)}, "no keyword of that name"),
        ({"block": ()}, "at least one"),
        ({"block": (64, 64)}, "once"),
        ({"block": (128, 64)}, "default is 64: put that first"),
    ],
)
def test_a_space_that_does_not_fit_its_function_is_refused_where_it_is_written(
    space: dict[str, tuple[int, ...]], words: str
) -> None:
    with pytest.raises(ValueError, match=words):

        @variant(op="add", backend="torch", space=space)
        def odd(x, y, *, block=64):  # type: ignore[no-untyped-def]
            """Odd."""
            return lambda: None


@pytest.mark.parametrize("name", [f"{o.name} {v.name}" for o in catalogue().values() for v in o.variants if v.space])
def test_every_space_of_the_catalogue_can_be_drawn_from(name: str) -> None:
    of, _, what = name.partition(" ")
    one = catalogue()[of]
    made = one.problem(dict.fromkeys(one.axis_names, 4096), one.dtypes[0])
    drawn = draw(one, what, made, 100)
    found = one.of(made).variant_named(what)
    assert drawn.configurations[0] == found.default
    assert all(found.named(c).keywords(made) for c in drawn.configurations)
