"""Variants of `softmax` that are wrong in a known place, and one that is right in another layout. A plug-in for the worker."""

from kernelviz.ops import Launch, variant


@variant(op="softmax", backend="torch")
def forgets_the_last_tile(x_MN) -> Launch:
    """Leaves the last 100 columns of the last 16 rows unwritten, and errs by 5 % in the row above them."""
    import torch

    out_MN = torch.empty_like(x_MN)

    def launch():
        y_MN = x_MN.softmax(-1)
        out_MN[:-16] = y_MN[:-16]
        out_MN[-16:, :-100] = y_MN[-16:, :-100]
        out_MN[-17, -100:] *= 1.05
        return out_MN

    return launch


@variant(op="softmax", backend="torch")
def spoils_a_row(x_MN) -> Launch:
    """Row 17 is 1 % too large, one element of row 18 infinite, its last two are off."""

    def launch():
        y_MN = x_MN.softmax(-1)
        y_MN[17] *= 1.01
        y_MN[18, 5] = float("inf")
        y_MN[18, -2:] *= 1.01
        return y_MN

    return launch


@variant(op="softmax", backend="torch")
def stores_columns(x_MN) -> Launch:
    """Right, and stored column by column."""
    return lambda: x_MN.softmax(-1).t().contiguous().t()
