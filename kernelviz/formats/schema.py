"""The JSON Schema of the native document, made from the types that read it.

``python -m kernelviz.formats.schema > docs/kernelviz-2.schema.json`` writes the published one; a test compares.
"""

import json
import sys
from typing import Any

import msgspec

from kernelviz.core import SCHEMA, Run

_DERIVED: dict[str, dict[str, dict[str, Any]]] = {
    "Run": {
        "digest": {
            "type": "string",
            "description": "SHA-256 (hex) over the JSON of [plan, environment, method, results] with sorted keys, without the "
            "plan's plug-ins and the trust lines. Readers do not need it.",
        }
    },
    "Result": {
        "trust": {
            "type": "object",
            "additionalProperties": {"type": "string"},
            "description": "The measurement quality of each device time as text. Derived from other fields; readers ignore it.",
        }
    },
}
"""Fields that writers add for people and that kernelviz does not read."""


def schema() -> dict[str, Any]:
    """As JSON Schema 2020-12. Fields that it does not name are allowed: readers ignore them."""
    generated = msgspec.json.schema(Run)
    definitions: dict[str, Any] = generated["$defs"]
    for name, fields in _DERIVED.items():
        definitions[name]["properties"] |= fields
    definitions["Run"]["properties"]["schema"] = {"const": SCHEMA}
    definitions["Run"]["required"] = ["schema", *definitions["Run"]["required"]]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:{SCHEMA.replace('/', ':')}",
        "title": f"A run of GPU kernels, {SCHEMA}",
        "description": "Times in seconds, sizes in bytes, all quantities in SI base units as the names of fields say. A quantity "
        "that is not known, or not finite, is null.",
    } | generated


def text() -> str:
    """The published file."""
    return json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(text())
