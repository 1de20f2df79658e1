"""No identifier of kernelviz uses a term that the project's glossary replaces by a term of the field."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import kernelviz

PACKAGE = Path(kernelviz.__file__).parent
FILES = {p.stem: sorted(p.rglob("*.py")) or [p] for p in PACKAGE.iterdir() if p.suffix == ".py" or any(p.rglob("*.py"))}
REPLACED = frozenset(
    re.findall(
        r"\w+",
        "words word trust sound noticed doubtful turn turns joining joined completed standing loop places powers "
        "mailbox near far site others drawn told shown taken made found kept asked held stands tries item items task tasks "
        "job jobs late rung rungs",
    )
)
IN_OPS = REPLACED | {"claims"}
"""In tile schedulers, "claims" was the name of the tile counter. Elsewhere, a claim is a published number."""
EXCEPTIONS = {
    "ops/row_reduction/variants.py": {"cuda_words"},  # the name of a variant
    "ui/server/connections.py": {"connection_made"},  # asyncio's name of the method
    # A natural loop of a control flow graph: the compilers' term.
    "core/machine_code.py": {"MainLoop", "main_loop"},
    "machine_code/control_flow.py": {"Loop"},
    "machine_code/main_loop.py": {"loop", "_main_loop"},
    "machine_code/sass_listing.py": {"main_loop_only", "_loop_addresses"},
    "core/result.py": {"loop_s"},  # a column, a value of the URL parameter `samples`, and a figure in exported samples
}
"""Identifiers by file that keep a replaced term, because the term is a name on the wire or of another room."""


def names(tree: ast.AST) -> Iterator[str]:
    """Every identifier that the module defines: variables, attributes, parameters, functions, classes and imports' aliases."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield name
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.ExceptHandler(name=str(name)) | ast.alias(asname=str(name)):
                yield name


def replaced_terms(name: str, package: str = "") -> set[str]:
    terms = IN_OPS if package == "ops" else REPLACED
    return {part.lower() for part in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)} & terms


@pytest.mark.parametrize(
    ("name", "expected"),
    [("_found_slower", {"found"}), ("ItemEnd", {"item"}), ("KEPT_S", {"kept"}), ("turnstile", set()), ("place", set())],
)
def test_a_term_is_recognised_as_a_part_of_a_name(name: str, expected: set[str]) -> None:
    assert replaced_terms(name) == expected


def test_the_tile_counter_is_not_called_claims_again() -> None:
    assert replaced_terms("tile_claims", "ops") == {"claims"}
    assert replaced_terms("claims_on", "bench") == set()


@pytest.mark.parametrize("package", sorted(FILES))
def test_no_identifier_uses_a_replaced_term(package: str) -> None:
    left = {}
    for file in FILES[package]:
        path = file.relative_to(PACKAGE).as_posix()
        used = {name for name in names(ast.parse(file.read_text())) if replaced_terms(name, package)}
        assert used >= EXCEPTIONS.get(path, set()), f"an exception of {path} is not needed any more"
        if used - EXCEPTIONS.get(path, set()):
            left[path] = sorted(used - EXCEPTIONS.get(path, set()))
    assert not left
