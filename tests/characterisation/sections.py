"""The sections of facts: each a function without arguments that returns plain values. `FAST` ones are compared by a test."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from characterisation.of_catalogue import catalogue, commands
from characterisation.of_charts import charts_at_every_size, charts_of_tests
from characterisation.of_files import files, files_of_shipped, wire
from characterisation.of_planted import judgements, planted
from characterisation.of_refusals import refusals
from characterisation.of_runs import comparisons, library_comparison, runs_of_tests, shipped, stores

FAST: dict[str, Callable[[], Any]] = {
    "catalogue": catalogue,
    "charts": charts_of_tests,
    "commands": commands,
    "comparisons": comparisons,
    "files": files,
    "library_comparison": library_comparison,
    "refusals": refusals,
    "runs": runs_of_tests,
    "stores": stores,
    "wire": wire,
}
FULL: dict[str, Callable[[], Any]] = {
    "shipped": shipped,
    "shipped_charts": charts_at_every_size,
    "shipped_files": files_of_shipped,
    "judgements": judgements,
    "planted": planted,
}
