"""Describe the variants of plug-ins in a separate process, because the server never imports plug-ins."""

import time
from collections.abc import Sequence

from kernelviz.core import BadField
from kernelviz.ops import catalogue, with_plugins
from kernelviz.text import describe_failure
from kernelviz.worker.process import WorkerDied, WorkerProcess
from kernelviz.worker.protocol import Describe, Described, VariantFacts, WorkFailed

PLUGIN = "plug-in"
"""The field of a `BadField` about a plug-in (kernelviz.ops.catalog.discovery)."""
DESCRIBE_S = 120.0
"""Importing a plug-in may import torch, which takes seconds on a cold disk."""


def describe(plugins: Sequence[str]) -> tuple[VariantFacts, ...]:
    """The variants that these files and the installed entry points add to ops of the catalogue.

    Starts a process and waits for it. Errors: BadField with the path and what is wrong.
    """
    process = WorkerProcess()
    until = time.monotonic() + DESCRIBE_S
    where = ", ".join(plugins) or "an installed entry point"
    try:
        process.send(Describe(plugins=tuple(plugins)))
        while (left := until - time.monotonic()) > 0:
            reply = process.receive(left)
            if isinstance(reply, Described):
                return reply.variants
            if isinstance(reply, WorkFailed):
                raise BadField(PLUGIN, reply.plugin or where, reply.failure.message)
        raise BadField(PLUGIN, where, f"importing it took more than {DESCRIBE_S:.0f} s")
    except WorkerDied:
        raise BadField(PLUGIN, where, f"importing it: {describe_failure(process.fate())}") from None
    finally:
        process.end()


def variants_of(plugins: Sequence[str]) -> tuple[VariantFacts, ...]:
    """In the worker: import the plug-ins, and return the variants that they add to ops of the catalogue."""
    own = catalogue()
    known = {(name, v.name) for name, op in own.items() for v in op.variants}
    return tuple(
        VariantFacts(
            op=name,
            name=v.name,
            backend=v.backend,
            summary=v.summary,
            digest=v.source_digest(),
            needs=v.needs,
            dtypes=v.dtypes,
            computes=v.computes,
            directions=v.directions,
            mutates=v.mutates,
            slow_compile=v.slow_compile,
            only_when_named=v.only_when_named,
            published=v.published,
            space=dict(v.space),
            backward_digest=v.of_backward().source_digest() if v.backward else None,
        )
        for name, op in with_plugins(plugins).items()
        for v in op.variants
        if name in own and (name, v.name) not in known
    )
