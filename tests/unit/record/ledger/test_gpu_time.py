from __future__ import annotations

from dataclasses import replace

from msgspec import structs
from support.decisions import SERVER
from support.ledgers import A100, H100, a_device, holding
from support.manual_clock import NOON

from gpu_pruner.model.audience import Address, AddressKind, Audience, Person, TeamChannel
from gpu_pruner.model.book import Book, Phase
from gpu_pruner.model.plan import Decision, Plan
from gpu_pruner.record.ledger.gpu_time import gpu_time, owner_of


def spent(decision: Decision) -> dict[tuple[str, str], float]:
    plan = Plan(at=NOON, decisions=(decision,))
    return {(one.model, one.state): one.seconds for one in gpu_time(plan, since=0, until=60)}


def test_models_are_told_apart() -> None:
    mixed = structs.replace(
        holding(SERVER, 3), findings=(a_device(0, H100), a_device(1, A100), a_device(2, A100))
    )
    assert spent(mixed) == {(H100, "idle"): 60, (A100, "idle"): 120}


def test_a_slice_and_a_share_are_no_whole_gpu_of_their_model() -> None:
    parts = structs.replace(
        holding(SERVER, 2), findings=(a_device(0, H100, mig="3"), a_device(1, H100, shared=True))
    )
    assert spent(parts) == {(f"{H100} MIG", "idle"): 60, (f"{H100} shared", "idle"): 60}


def test_gpus_without_telemetry_have_no_model() -> None:
    dark = structs.replace(holding(SERVER, 3), findings=(a_device(0, H100),))
    assert spent(dark) == {(H100, "idle"): 60, ("", "idle"): 120}


def test_more_devices_than_gpus_say_nothing_of_their_model() -> None:
    odd = structs.replace(holding(SERVER, 1), findings=(a_device(0, H100), a_device(1, A100)))
    assert spent(odd) == {("", "idle"): 60}


def test_a_paused_workload_gives_back_what_it_held() -> None:
    book = Book(phase=Phase.PAUSED, gpus=4)
    workload = replace(holding(SERVER, 4).workload, pods=(), book=book)
    paused = structs.replace(holding(SERVER, 4), workload=workload, book=book, findings=())
    assert spent(paused) == {("", "paused"): 240}


def test_the_owner_is_everybody_who_is_told() -> None:
    people = tuple(
        Person(Address(AddressKind.NAME, name), "gpu-pruner.io/owner on pod serve-0")
        for name in ("alice", "bob")
    )
    audience = Audience(people=people, channel=TeamChannel("#gpu", "the settings"))
    workload = replace(holding(SERVER, 1).workload, audience=audience)
    assert owner_of(structs.replace(holding(SERVER, 1), workload=workload)) == "alice, bob"
    assert owner_of(holding(SERVER, 1)) == ""
