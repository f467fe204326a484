from __future__ import annotations

from pathlib import Path

import pytest

from gpu_pruner.errors import ConfigurationError, LedgerError
from gpu_pruner.record.ledger.entries import Batch
from gpu_pruner.record.ledger.spool import Spool


def a_batch(name: str, *, failure: str = "") -> Batch:
    return Batch(name, 0.0, 1.0, 0, failure, ())


def drained(spool: Spool) -> list[str]:
    found: list[str] = []
    spool.drain(lambda batch: found.append(batch.cycle_id))
    return found


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return Spool(tmp_path / "ledger.spool")


def test_what_was_appended_comes_back_in_order_and_once(spool: Spool) -> None:
    for name in "abc":
        spool.append(a_batch(name))
    assert spool.count() == 3
    assert drained(spool) == ["a", "b", "c"]
    assert drained(spool) == []


def test_another_process_reads_it(spool: Spool, tmp_path: Path) -> None:
    spool.append(a_batch("a"))
    assert drained(Spool(tmp_path / "ledger.spool")) == ["a"]


def test_nothing_is_taken_out_where_storing_fails(spool: Spool) -> None:
    for name in "abc":
        spool.append(a_batch(name))

    def store(batch: Batch) -> None:
        if batch.cycle_id == "b":
            raise LedgerError("away")

    with pytest.raises(LedgerError, match="away"):
        spool.drain(store)
    assert drained(spool) == ["a", "b", "c"]


def test_a_record_torn_anywhere_costs_only_itself(tmp_path: Path) -> None:
    path = tmp_path / "ledger.spool"
    spool = Spool(path)
    spool.append(a_batch("a"))
    first = path.stat().st_size
    spool.append(a_batch("b"))
    whole = path.read_bytes()
    for length in range(first, len(whole)):
        path.write_bytes(whole[:length])
        spool.append(a_batch("c"))
        assert drained(spool) == ["a", "c"], length
    assert list(tmp_path.iterdir()) == [path]


def test_a_hole_in_the_middle_costs_one_record_and_is_told(tmp_path: Path) -> None:
    path = tmp_path / "ledger.spool"
    spool = Spool(path)
    sizes = []
    for name in "abc":
        spool.append(a_batch(name))
        sizes.append(path.stat().st_size)
    broken = bytearray(path.read_bytes())
    broken[sizes[0] + 20] ^= 0xFF
    path.write_bytes(broken)
    found: list[str] = []
    assert spool.drain(lambda batch: found.append(batch.cycle_id)) == 1
    assert found == ["a", "c"]


def test_what_is_no_record_at_all_is_set_aside(tmp_path: Path) -> None:
    path = tmp_path / "ledger.spool"
    spool = Spool(path)
    spool.append(a_batch("a"))
    with path.open("ab") as file:
        file.write(b"something else altogether")
    spool.append(a_batch("b"))
    assert drained(spool) == ["a", "b"]
    assert (tmp_path / "ledger.damaged").read_bytes() == b"something else altogether"


def test_it_does_not_grow_for_ever(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "ledger.spool", largest=200)
    spool.append(a_batch("a"))
    while (tmp_path / "ledger.spool").stat().st_size + 41 <= 200:
        spool.append(a_batch("b"))
    with pytest.raises(LedgerError, match="has reached its 200 bytes"):
        spool.append(a_batch("c"))
    assert (tmp_path / "ledger.spool").stat().st_size <= 200
    assert set(drained(spool)) == {"a", "b"}


def test_a_directory_that_is_none_is_bad_input(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(ConfigurationError, match=r"ledger.directory: .*/file cannot be written in"):
        Spool(tmp_path / "file" / "ledger.spool")


def test_only_its_owner_may_read_it(tmp_path: Path) -> None:
    Spool(tmp_path / "ledger.spool").append(a_batch("a"))
    assert (tmp_path / "ledger.spool").stat().st_mode & 0o077 == 0
