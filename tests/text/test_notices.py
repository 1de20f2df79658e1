"""Each notice in text, with the data that `hardware` gives it."""

from __future__ import annotations

import string
from typing import get_args

import pytest

from kernelviz.core.notices import Datum, Notice, NoticeKind
from kernelviz.text.notices import _NAMES, _TEXTS, describe_notice, format_notice

DATA: dict[str, Datum] = {
    "cause": Notice("driver_updated"),
    "variants": ("triton", "inductor"),
    "lacking": ("cuda-core",),
    "builds": "triton",
    "includes": "inductor",
    "consequence_of": "TMPDIR",
    "memory_bytes": 2**30,
    "left_bytes": 2**20,
    "used_bytes": 2**30,
    "folders": ("/a", "/b"),
    "variables": ("TMPDIR", "TRITON_CACHE_DIR"),
    "processes": ((7, "python"), (8, None)),
    "count": 2,
    "more": 2,
    "multiprocessors": None,
    "least_driver": 580,
}


def fields(kind: NoticeKind) -> set[str]:
    parsed = (part for template in _TEXTS[kind] for part in string.Formatter().parse(template))
    return {name.partition(".")[0] for _, name, _, _ in parsed if name is not None}


@pytest.mark.parametrize("kind", get_args(NoticeKind))
def test_every_kind_has_a_sentence_of_its_data(kind: NoticeKind) -> None:
    notice = Notice(kind, {name: DATA.get(name, f"<{name}>") for name in fields(kind)})
    sentence, remedy = map(str, describe_notice(notice))
    assert sentence
    assert not sentence.endswith(".")
    assert not remedy.endswith(".")
    for name in fields(kind) - DATA.keys():
        assert f"<{name}>" in f"{sentence}; {remedy}"
    assert str(format_notice(notice)) == "; ".join(part for part in (sentence, remedy) if part)


def test_no_kind_is_described_that_does_not_exist() -> None:
    assert set(_TEXTS) == set(get_args(NoticeKind))


def test_names_numbers_and_lists_in_text() -> None:
    data: dict[str, Datum] = {"variants": ("triton", "inductor", "cxx"), "cause": Notice("no_triton")}
    assert str(describe_notice(Notice("variants_lack", data)).sentence) == (
        "Triton, torch.compile and C++ variants need Triton"
    )
    newer: dict[str, Datum] = {
        "driver": None,
        "supported": "14.0",
        "torch": "3.0",
        "cuda": "15.0",
        "least_driver": None,
    }
    assert str(describe_notice(Notice("driver_too_old", newer)).sentence) == (
        "driver unknown supports CUDA 14.0, torch 3.0 is built for CUDA 15.0, which needs a newer driver"
    )
    programs = describe_notice(Notice("more_programs", {"processes": ((7, "python"), (8, None)), "more": 2}))
    assert "python (process 7), a program without a name (process 8) and 2 more)" in str(programs.sentence)
    assert {"variants", "builds", "includes", "consequence_of"} <= _NAMES.keys()
