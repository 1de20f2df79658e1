"""What the tests of the whole product on a GPU share."""

from collections.abc import Iterator

import pytest

from kernelviz.bench import Bench, current


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """The product's own bench, with a store of the module's own."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("KERNELVIZ_HOME", str(tmp_path_factory.mktemp("home")))
        made = current()
        yield made
        made.close()
