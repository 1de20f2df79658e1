"""What Liger Kernel refuses is refused by a name that the page can show, before anything is launched."""

import pytest
import torch

from kernelviz.core.errors import BadField
from kernelviz.ops.kernels.liger_rows import LONGEST, require_rows


def test_rows_that_its_programs_cannot_hold_are_refused_by_the_name_of_the_axis() -> None:
    require_rows(x_MN=torch.empty(1, LONGEST), w_N=torch.empty(LONGEST))
    with pytest.raises(
        BadField, match=r"size n: '65537' cannot be used; .* at most 65,536 elements; choose another variant"
    ):
        require_rows(x_MN=torch.empty(1, LONGEST + 1), w_N=torch.empty(LONGEST + 1))


def test_the_limit_is_that_of_the_library() -> None:
    utils = pytest.importorskip("liger_kernel.ops.utils")
    utils.calculate_settings(LONGEST)
    with pytest.raises(RuntimeError):
        utils.calculate_settings(LONGEST + 1)
