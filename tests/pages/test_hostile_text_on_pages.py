"""No text of a document is read as Markdown, HTML or LaTeX, on any page."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import hostile_documents as hostile
import msgspec
import sample_runs as samples
import sample_tunings as tunings
import sample_workloads as workloads
from google.protobuf.message import Message
from open_page import open_page

from kernelviz.bench import Bench
from kernelviz.core.run import Run
from kernelviz.core.workload import WorkloadRun
from kernelviz.formats import workload_document

TEXT = "![p](https://evil.example/p.png) <b>h</b> $x$ :red[y] `qq"
INTERPRETED = ("![p](", "<b>h", " $x$", ":red[y]", " `qq")
"""What Streamlit would read as a picture, as HTML, as LaTeX, as a colour and as code. Escaped, none of these stands in a text."""
PLAIN = {
    ("BidiComponent", "json"),  # figures, whose texts are escaped for Plotly (tests/plots)
    ("Code", "code_text"),
    ("MultiSelect", "options"),
    ("MultiSelect", "raw_values"),
    ("Selectbox", "options"),
    ("Selectbox", "raw_value"),
    ("Text", "body"),
    ("TextInput", "default"),
    ("TextInput", "value"),
    ("TextArea", "default"),
    ("TextArea", "value"),
}
"""The fields that the browser shows as they are."""
PAGES: tuple[tuple[str, dict[str, str]], ...] = (
    ("bench", {"run": "{a}"}),
    ("bench", {"run": "{a}", "with": "{b}", "show": "winner", "l2": "warm"}),
    ("bench", {"run": "{b}", "show": "time"}),
    ("roofline", {"runs": "{a},{b}"}),
    ("compare", {"a": "{a}", "b": "{b}"}),
    ("history", {}),
    ("history", {"lists": "trends"}),
    ("gallery", {}),
    ("claims", {"results": "cpu"}),
    ("fusion", {"of_run": "{a}"}),
    ("libraries", {}),
    ("code", {"run": "{a}"}),
    ("code", {"run": "{a}", "run_b": "{b}"}),
    ("ladder", {"run": "{a}"}),
    ("ladder", {"run": "ladder"}),
    *(
        ("autotune", {"run": run, "autotune_view": view})
        for run in ("{tuned}", "hostile-tuning")
        for view in ("overview", "parameters", "registers", "configurations", "shapes")
    ),
    ("workloads", {"of_run": "w-hostile"}),
    ("workloads", {"of_run": "w-hostile", "view": "compare"}),
    ("history", {"lists": "workloads", "run": "w-hostile"}),
    ("device", {}),
    ("method", {}),
)


def texts_of(message: Message, field: str = "") -> Iterator[tuple[str, str]]:
    """(the field, its text) of an element and of everything in it."""
    for descriptor, value in message.ListFields():
        name = descriptor.name
        for one in value if descriptor.is_repeated else [value]:
            if isinstance(one, Message):
                yield from texts_of(one, name)
            elif isinstance(one, str):
                yield name, one


def shown(node: Any) -> Iterator[tuple[str, str, str]]:
    """(kind of element, field, text) of everything below a node of a page, the labels of tabs and popovers included."""
    for child in node.children.values():
        proto = getattr(child, "proto", None)
        if isinstance(proto, Message):
            yield from ((type(proto).__name__, *one) for one in texts_of(proto))
        if hasattr(child, "children"):
            yield from shown(child)


def interpreted(kind: str, field: str, text: str) -> bool:
    if (kind, field) == ("Dataframe", "columns"):  # headings are plain, the help of a column is not
        return any(sign in column.get("help", "") for column in json.loads(text).values() for sign in INTERPRETED)
    return (kind, field) not in PLAIN and any(sign in text for sign in INTERPRETED)


def cache() -> bytes:
    """A cache of Kernel Tuner whose names, values and errors are that text."""
    values = [TEXT, f"{TEXT}, again", 1, True]
    entries = {
        str(n): {"b": value, "time": 1.0 + n} | ({"time": "RuntimeFailedConfig", "error": TEXT} if n == 3 else {})
        for n, value in enumerate(values)
    }
    head = {"device_name": TEXT, "kernel_name": TEXT, "problem_size": [64], "tune_params_keys": ["b"]}
    return json.dumps({**head, "tune_params": {"b": values}, "cache": entries}).encode()


def tuning() -> Run:
    """A tuning of this project whose title, device, variant, parameters and failures are that text."""
    run = tunings.run()
    results = tuple(
        samples.failed(tunings.ADD, result.variant, "compile", TEXT) if number % 6 == 5 else result
        for number, result in enumerate(run.results)
    )
    assert run.plan.search is not None
    search = msgspec.structs.replace(run.plan.search, variant=TEXT, parameters={TEXT: (TEXT,)})
    environment = msgspec.structs.replace(
        run.environment, device=msgspec.structs.replace(run.environment.device, name=TEXT)
    )
    plan = msgspec.structs.replace(run.plan, search=search)
    return msgspec.structs.replace(
        run, id="hostile-tuning", title=TEXT, note=TEXT, environment=environment, plan=plan, results=results
    )


def workload() -> WorkloadRun:
    """A run of a workload whose names, texts, notes and failures are that text."""
    run = workloads.run(id="w-hostile", times_s={"slow": 2e-3, "fast": 1e-3, "dies": 1e-3}, failing=("dies",))
    values = msgspec.to_builtins(run)
    for axis in values["declared"]["axes"]:
        axis |= {"title": TEXT, "help": TEXT}
    for variant in values["declared"]["variants"]:
        variant |= {"caption": TEXT, "idea": TEXT}
    for figure in values["declared"]["figures"]:
        figure |= {"title": f"{TEXT} {figure['name']}", "help": TEXT}
    values["declared"] |= {"name": TEXT, "title": TEXT, "summary": TEXT, "limits": [{"name": TEXT, "text": TEXT}]}
    values["plan"]["workload"] = TEXT
    for case in (*values["plan"]["cases"], *(result["case"] for result in values["results"])):
        case["workload"] = TEXT
        case["values"]["kind"] = TEXT
    for result in values["results"]:
        result["notes"] = [{"kind": "other", "text": TEXT}, {"kind": "not_finite", "text": TEXT}]
        if result["failure"] is not None:
            result["failure"]["message"] = TEXT
    values |= {"title": TEXT, "note": TEXT}
    values["environment"]["device"]["name"] = values["devices"][0]["name"] = TEXT
    return msgspec.convert(json.loads(json.dumps(values)), WorkloadRun)


def test_no_text_of_a_document_is_interpreted_on_a_page(bench: Bench) -> None:
    content = hostile.hostile(TEXT)
    second = json.loads(content)
    second["environment"]["device"]["uuid"] = samples.CPU.uuid  # shown as a run of this machine
    a, b = (bench.history.take_in_all(one)[0] for one in (content, json.dumps(second).encode()))
    (tuned,) = bench.history.take_in_all(cache())
    bench.history.add(tuning())
    bench.workloads.take_in(workload_document.encode(workload()))
    found: set[tuple[str, str, str, str]] = set()
    drawn = 0
    for page, query in PAGES:
        test = open_page({name: value.format(a=a, b=b, tuned=tuned) for name, value in query.items()}, page)
        for root in (test.main, test.sidebar):
            for kind, field, text in shown(root):
                drawn += "evil.example" in text
                if interpreted(kind, field, text):
                    found.add((page, kind, field, text[:300]))
    assert not found
    assert drawn > 20, "the texts are not on the pages"
