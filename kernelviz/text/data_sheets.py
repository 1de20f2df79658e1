"""Text beside the data sheets of GPUs."""

from kernelviz.core import Device, units
from kernelviz.text.text import Text

HOW_TO_READ = (
    "Rates are dense, without sparsity. A figure that no document of the maker states is unknown (–), and so is what was not "
    "measured on such a card. A measured value is the highest roof of its kind."
)


def describe_count(sheets: int, here: int) -> Text:
    """How many data sheets are listed, and how many of them are of cards of this machine.

    >>> str(describe_count(45, 1)), str(describe_count(3, 0))
    ('45 data sheets, 1 of a card in this machine (●).', '3 data sheets, none of a card in this machine.')
    """
    cards = (
        f"{here} of {'a card' if here == 1 else 'cards'} in this machine (●)"
        if here
        else "none of a card in this machine"
    )
    return Text(f"{units.counted(sheets, 'data sheet')}, {cards}.")


def describe_no_match(search: str) -> Text:
    """That no data sheet matches, and what to do.

    >>> str(describe_no_match("h300"))
    'No data sheet matches “h300”. Search for a part of a name, for example h100, or for an architecture, for example hopper.'
    """
    return Text(
        f"No data sheet matches “{search}”. Search for a part of a name, for example h100, or for an architecture, for example "
        "hopper."
    )


def describe_without_sheet(device: Device) -> Text:
    """That a GPU of this machine is not in the table."""
    return Text(
        f"{device.id} ({device.name}) has no data sheet here: no sheet is of exactly this name, and figures are never guessed."
    )
