"""Use case: the table of claims as a Markdown document, as docs/claims.md is."""

from kernelviz.bench.bench import Bench
from kernelviz.bench.claims import ClaimsOnDevice, measured_at
from kernelviz.formats.claim_files import shipped_claims
from kernelviz.formats.claims_markdown import claims_document
from kernelviz.metrics.claims import Assessment


def markdown(bench: Bench, of_device: ClaimsOnDevice, assessments: tuple[Assessment, ...] | None = None) -> str:
    """The document of all claims, or of a selection of their assessments, in the order of the sources."""
    ids = {a.claim.id for a in (of_device.assessments if assessments is None else assessments)}
    in_order = [a for a in of_device.assessments if a.claim.id in ids]
    return claims_document(of_device.device, in_order, shipped_claims(), measured_at(bench, of_device))
