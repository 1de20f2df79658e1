"""`kernelviz device --sheets`: the data sheets of all GPUs."""

from kernelviz.bench import Bench
from kernelviz.bench.data_sheets import ORDERS, data_sheets, records, without_sheet
from kernelviz.cli import console
from kernelviz.core import check_name
from kernelviz.tables.column import View
from kernelviz.tables.data_sheets import sheet_columns
from kernelviz.text.data_sheets import HOW_TO_READ, describe_no_match, describe_without_sheet


def show(bench: Bench, search: str, order: str, *, as_json: bool) -> None:
    """Print the data sheets that match the search. Errors: UnknownName for `--sort`."""
    check_name("--sort", order, ORDERS)
    rows = data_sheets(bench, search, order=order)
    if as_json:
        console.print_json(records(rows))
        return
    if rows:
        console.show(console.table(sheet_columns(rows, View.TERMINAL), rows))
        console.err().print(HOW_TO_READ)
    else:
        console.err().print(str(describe_no_match(search)))
    for device in without_sheet(bench):
        console.err().print(str(describe_without_sheet(device)))
