"""The files of published claims: every row can be measured by the catalogue, and an error names the row."""

from __future__ import annotations

import pytest

from kernelviz.bench.claims import key_of, problem_of
from kernelviz.core import DocumentError
from kernelviz.core.claim import Claim, NoTest, RatioTest
from kernelviz.formats.claim_files import read_claims, shipped_claims
from kernelviz.hardware.datasheet import datasheet
from kernelviz.ops import catalogue

SOURCE = '[[source]]\nname = "s"\ntitle = "A title"\nwhere = "a document"\n'
CASE = '{ op = "add", variant = "torch_eager", sizes = { n = 8 }, dtype = "fp32" }'
CLAIM = (
    '[[claim]]\nid = "one"\nsource = "s"\nsetup = "x"\npublished = { value = 1.5, unit = "x", rounded_to = 0.1 }\n'
    f'direction = "at_least"\ntest = {{ kind = "ratio", case = {CASE}, over = [{CASE}] }}\n'
)


@pytest.mark.parametrize("claim", shipped_claims().claims, ids=lambda claim: claim.id)
def test_every_plan_of_a_claim_is_valid(claim: Claim) -> None:
    """The op, its sizes, the number format and the variant exist, and the variant takes the problem."""
    for case in claim.cases:
        op = catalogue()[case.op]
        problem = problem_of(op, case)
        variant = op.variant_named(case.variant)
        assert variant.refuses(problem) is None
        assert key_of(catalogue(), case) == f"{problem.key} | {variant.name}"


def test_every_row_says_what_it_is() -> None:
    collection = shipped_claims()
    used = {c.source for c in collection.claims}
    assert used == {s.name for s in collection.sources}, "a source without a claim, or the reverse"
    for claim in collection.claims:
        assert len(claim.setup) > 10, claim.id
        assert not isinstance(claim.test, NoTest) or len(claim.test.takes) > 20, claim.id
        if claim.scaled_by is not None:
            assert datasheet(claim.sheet_card or claim.published_on or "") is not None, claim.id
    concerned = {i for c in collection.contradictions for i in c.claims}
    assert concerned <= {c.id for c in collection.claims}
    assert len(collection.contradictions) >= 7


def test_a_gain_that_a_variant_declares_is_a_claim_with_the_same_factor() -> None:
    """`PublishedGain` and the rows are two places of one number."""
    ratios = {
        (claim.test.case.op, claim.test.case.variant, over.variant): claim.published.value
        for claim in shipped_claims().claims
        if isinstance(claim.test, RatioTest)
        for over in claim.test.over
    }
    declared = {
        (op.name, variant.name, variant.published.over): variant.published.factor
        for op in catalogue().values()
        for variant in op.variants
        if variant.published is not None
    }
    assert len(declared) > 5
    # `causal_attention` has the variants of `attention`, whose rows count for both.
    rows = {key: ratios.get(key, ratios.get((key[0].removeprefix("causal_"), *key[1:]))) for key in declared}
    assert rows == pytest.approx(declared, rel=0.01)


def test_a_file_is_read() -> None:
    collection = read_claims({"a.toml": SOURCE + CLAIM})
    (claim,) = collection.claims
    assert collection.source_of(claim).title == "A title"
    assert claim.published.tolerance == pytest.approx(0.05 / 1.5)


@pytest.mark.parametrize(
    ("text", "path", "reason"),
    [
        (SOURCE + CLAIM.replace('"at_least"', '"at_last"'), "a.toml: claim 1 (one)", "Invalid enum value 'at_last'"),
        (SOURCE + CLAIM.replace("setup", "setpu"), "a.toml: claim 1 (one)", "setpu"),
        (SOURCE + CLAIM.replace("value = 1.5", 'value = "1.5"'), "a.toml: claim 1 (one)", "Expected `float`"),
        (SOURCE + CLAIM.replace("value = 1.5", "value = -1.5"), "claim 'one'", "give a number above 0"),
        (SOURCE + CLAIM.replace("value = 1.5", "value = nan"), "claim 'one'", "give a number above 0"),
        (SOURCE + CLAIM.replace("rounded_to = 0.1", "rounded_to = 2.0"), "claim 'one'", "at most the value"),
        (SOURCE + CLAIM.replace('unit = "x"', 'unit = "s"'), "claim 'one'", "its test gives x"),
        (SOURCE + CLAIM.replace('source = "s"', 'source = "t"'), "claim 'one'", "no source 't'"),
        (SOURCE + CLAIM.replace(f"over = [{CASE}]", "over = []"), "claim 'one'", "at least one case"),
        (
            SOURCE + CLAIM.replace('dtype = "fp32"', 'dtype = "fp32", figure = "energy"'),
            "claim 'one'",
            "use cold, warm",
        ),
        (SOURCE + CLAIM.replace("direction", 'scaled_by = "bf16"\ndirection'), "claim 'one'", "published_on"),
        (SOURCE + CLAIM + CLAIM, "claim 'one'", "used twice"),
        (
            SOURCE + CLAIM + '[[contradiction]]\nsource = "s"\nsentence = "x"\nclaims = ["two"]\n',
            "contradiction 1",
            "'two'",
        ),
        (SOURCE.replace("title", "titel"), "a.toml: source 1 (s)", "titel"),
        ("[[clam]]\n", "a.toml", "no table [[clam]]"),
        ("[claim]\nid = 1\n", "a.toml", "write [[claim]]"),
        ("[[claim", "a.toml", "it is not TOML"),
    ],
)
def test_an_error_names_the_file_or_the_row(text: str, path: str, reason: str) -> None:
    with pytest.raises(DocumentError) as caught:
        read_claims({"a.toml": text})
    assert path in caught.value.path
    assert reason in caught.value.reason
