"""Where the database is: folders of any name, addresses that are wrong; no password in any message."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelviz.store import Store, StoreError


@pytest.mark.parametrize("name", ["what?x=1", "a%20b", "a#b", "a b:c@d"])
def test_a_folder_may_have_any_name(name: str, tmp_path: Path) -> None:
    store = Store.open(tmp_path / name)
    found = store.folder
    store.close()
    assert found == tmp_path / name
    assert (tmp_path / name / "kernelviz.db").is_file()
    assert [p.name for p in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("nonsense", "is not the address of a database"),
        ("postgresql+psycopg://bob:sEcret@host:notaport/x", "is not the address of a database"),
        ("postgresql+psycopg://bob:p@sEcret@host/x", "%40 for @"),
        ("nosuchkind://bob:sEcret@host/x", "'nosuchkind' is not a known kind of database"),
        ("nosuchkind://bob:p@host/x?password=sEcret", "'nosuchkind' is not a known kind of database"),
    ],
)
def test_a_wrong_address_is_said_without_its_password(url: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELVIZ_DATABASE_URL", url)
    with pytest.raises(StoreError) as refused:
        Store.open()
    assert "KERNELVIZ_DATABASE_URL" in str(refused.value)
    assert words in str(refused.value)
    assert "sEcret" not in str(refused.value)


def test_a_driver_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "psycopg", None)  # as if it were not there
    monkeypatch.setenv("KERNELVIZ_DATABASE_URL", "postgresql+psycopg://bob:sEcret@host/x")
    with pytest.raises(StoreError, match=r"bob:\*\*\*@host.*'psycopg' is not installed") as refused:
        Store.open()
    assert "sEcret" not in str(refused.value)
