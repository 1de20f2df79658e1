"""A run as one self-contained HTML page: interactive charts, tables, trust, environment, method, and how to measure it again."""

from kernelviz.formats.export_format import Export
from kernelviz.formats.offline.page import page

EXPORT = Export(name="html", suffix=".html", media_type="text/html", encode=page)
