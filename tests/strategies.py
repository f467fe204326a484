"""All Hypothesis strategies: devices, workloads, worlds and wishes, as `support.world` tells them.

Most of what they tell is healthy and idle, so that plans do act; the rest is everything that should
stop them. A world is one draw of bytes, read as a tape of choices: hundreds of draws would cost
many times what the promise itself does. A zero is the plainest choice, so that failures shrink.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from hypothesis import strategies as st

from gpu_pruner.model.annotations import ACK_UNTIL, EXEMPT, HOLD, PREFIX

T = TypeVar("T")
Spec = dict[str, Any]

WINDOW_MINUTES = 35
DUE = {"phase": "Warned", "warned_at": "-20m", "pause_at": "-1m", "warned_mode": "scale-down"}
NOMINATED = {"phase": "Nominated", "confirmations": 1, "nominated_at": "-5m"}

NAMESPACES = ("team-a", "team-b", "team-c", "team-d", "team-e", "team-f")
KINDS = ("Deployment", "StatefulSet", "Notebook")

HOSTILE_TEXT = st.text(max_size=60) | st.sampled_from(
    ["", " ", "TRUE", "\x00", "\u202eeurt", "9" * 400, "2026-13-45T99:99:99Z", "2026-01-01",
     "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "{}", "null", "<!channel>"]
)  # fmt: skip


class Tape:
    """Choices, one byte each; at the end of the tape every choice is the plainest."""

    def __init__(self, choices: bytes) -> None:
        self._choices = iter(choices)

    def number(self, least: int, most: int) -> int:
        """Return a number from least to most; the least is the plainest."""
        return least + next(self._choices, 0) % (most - least + 1)

    def pick(self, options: Sequence[T]) -> T:
        """Return one of the options; the first is the plainest."""
        return options[self.number(0, len(options) - 1)]

    def ago(self) -> str:
        """Return a moment of the last 80 minutes."""
        return f"-{self.number(0, 80)}m"

    def stretch(self) -> str:
        """Return a stretch within the last 80 minutes, up to 20 minutes long."""
        begin, lasting = self.number(1, 80), self.number(1, 20)
        return f"-{begin}m to -{max(0, begin - lasting)}m"


def taped(tell: Callable[[Tape], T], length: int) -> st.SearchStrategy[T]:
    """Return what is told from so many choices."""
    return st.binary(min_size=length, max_size=length).map(lambda choices: tell(Tape(choices)))


LOUD: dict[str, tuple[float, ...]] = {
    "engine": (0.0001, 0.0099, 0.01, 0.0101, 0.4, 1.0, 1.05, 90.0),
    "util": (0.5, 1, 4, 5, 99, 100, 218322032, -1),
    "encoder": (1, 60, 100),
}


def told_values(tape: Tape, name: str) -> object:
    """Tell what a signal reads: nothing, or work or garbage now and then or all the time."""
    loud = tape.pick(LOUD[name])
    match tape.number(0, 5):
        case 0:
            return 0
        case 1:
            return loud
        case 2:
            return f"{loud} at {tape.ago()}"
        case 3:
            return f"{loud} from {tape.stretch()}"
        case 4:
            return f"nan at {tape.ago()}"
        case _:
            return "absent"


ODDITIES: dict[str, Callable[[Tape], object]] = {
    "engine": lambda tape: told_values(tape, "engine"),
    "util": lambda tape: told_values(tape, "util"),
    "encoder": lambda tape: told_values(tape, "encoder"),
    "energy": lambda tape: tape.pick(
        ["moving", "frozen", "absent", f"moving until {tape.ago()}", f"moving from {tape.ago()}"]
    ),
    "temperature": lambda tape: tape.pick(["moving", "frozen"]),
    "gap": Tape.stretch,
    "previous": lambda tape: f"team-b/old until {tape.ago()}",
    "unlabelled": Tape.stretch,
    "labels": lambda tape: tape.pick(["native", "none"]),
    "replica": lambda _: "0",
    "node": lambda tape: tape.pick(["node-2", "node-1.example.org", "3f1c2d"]),
}


def told_device(tape: Tape) -> Spec:
    """Tell of a device: idle in three of four, with up to three oddities in the others."""
    if tape.number(0, 3) < 3:
        return {}
    names = [tape.pick(tuple(ODDITIES)) for _ in range(tape.number(1, 3))]
    return {name: ODDITIES[name](tape) for name in names}


def told_pod(tape: Tape) -> Spec:
    """Tell of a pod: long Ready in most."""
    gpus = [told_device(tape) for _ in range(tape.number(1, 3))]
    spec: Spec = {"gpus": gpus, "node": tape.pick(["node-1", "node-1", "node-2"])}
    match tape.number(0, 9):
        case 9:
            spec["ready"] = tape.ago()
        case 8:
            spec |= {"phase": "Pending", "created": tape.pick(["-5m", "-3h"])}
        case 7:
            spec["terminating"] = True
        case 6:
            spec["requests"] = {"nvidia.com/gpu": tape.number(len(gpus), 4)}
        case _:
            pass
    return spec


def told_workload(tape: Tape) -> Spec:
    """Tell of a workload on the edge of a warning or a pause."""
    return {
        "kind": tape.pick(KINDS),
        "namespace": tape.pick(NAMESPACES),
        "book": tape.pick([DUE, DUE, NOMINATED]),
        "pods": [told_pod(tape) for _ in range(tape.number(1, 3))],
    }


def told_world(tape: Tape) -> dict[str, Spec]:
    """Tell of up to four workloads, by name; in one world of four all devices are shared."""
    is_shared = tape.number(0, 3) == 3
    found = {f"w-{number}": told_workload(tape) for number in range(tape.number(1, 4))}
    if is_shared:
        gpus = [
            one for workload in found.values() for pod in workload["pods"] for one in pod["gpus"]
        ]
        for one in gpus:
            one["replica"] = "0"
    return found


def told_idle_workload(tape: Tape) -> Spec:
    """Tell of a workload without doubt: idle, on its way, or already paused."""
    spec: Spec = {
        "kind": tape.pick(KINDS),
        "namespace": tape.pick(NAMESPACES),
        "gpus": tape.pick([1, 1, 1, 2, 4]),
    }
    match tape.pick(["new", "nominated", "due", "due", "warned", "paused"]):
        case "nominated":
            spec["book"] = NOMINATED
        case "due":
            spec["book"] = DUE | {"pause_at": f"-{tape.number(0, 9)}m"}
        case "warned":
            spec["book"] = DUE | {"pause_at": f"{tape.number(1, 30)}m"}
        case "paused":
            ago = tape.number(1, 80)
            spec["book"] = {"phase": "Paused", "paused_at": f"-{ago}m", "gpus": spec["gpus"]}
            spec |= {"pods": [], "owner": {"halted": True}}
        case _:
            pass
    return spec


def told_idle_world(tape: Tape, most: int = 12) -> dict[str, Spec]:
    """Tell of workloads that compete for the budget, by name."""
    return {f"w-{number:02d}": told_idle_workload(tape) for number in range(tape.number(1, most))}


def devices() -> st.SearchStrategy[Spec]:
    """Return one device, odd or not."""
    return taped(told_device, 16)


def worlds() -> st.SearchStrategy[dict[str, Spec]]:
    """Return up to four workloads with up to nine devices each."""
    return taped(told_world, 192)


def idle_worlds(*, most: int = 12) -> st.SearchStrategy[dict[str, Spec]]:
    """Return so many workloads that compete for the budget."""
    return taped(lambda tape: told_idle_world(tape, most), 1 + 5 * most)


WORDS = ("true", "True", " true ", "yes", "2026-06-01T00:00:00Z", "1h")


def told_wish(tape: Tape) -> Spec:
    """Tell of a wish to be left alone: what to merge into a workload, and into its namespace."""
    word = tape.pick(WORDS)
    where = tape.pick(["root", "root label", "pod", "namespace", "intent", "keep",
                       "ack", "hold", "held namespace", "protected"])  # fmt: skip
    told: dict[str, tuple[Spec, Spec]] = {
        "root": ({"owner": {"annotations": {EXEMPT: word}}}, {}),
        "root label": ({"owner": {"labels": {EXEMPT: word}}}, {}),
        "pod": ({"pods": [{"annotations": {EXEMPT: word}}]}, {}),
        "namespace": ({}, {"annotations": {EXEMPT: word}}),
        "intent": ({"intent": {"exempt": True}}, {}),
        "keep": ({"intent": {"keep_until": tape.pick(["20m", "23h", "900d"])}}, {}),
        "ack": ({"owner": {"annotations": {ACK_UNTIL: "2026-01-01T14:00:00+01:00"}}}, {}),
        "hold": ({"owner": {"annotations": {HOLD: word}}}, {}),
        "held namespace": ({}, {"labels": {HOLD: word}}),
        "protected": ({"namespace": "kube-system"}, {}),
    }
    workload, namespace = told[where]
    if tape.pick([True, False]):  # somebody else gave its GPUs back a moment ago
        workload = workload | {"intent": workload.get("intent", {}) | {"released": "-10s"}}
    return {"workload": workload, "namespace": namespace}


def wishes() -> st.SearchStrategy[Spec]:
    """Return a wish, in one of the words and places that there are."""
    return taped(told_wish, 4)


BOOKS = st.sampled_from(
    [
        {},
        NOMINATED,
        DUE,
        DUE | {"frozen_since": "-5m"},
        {"phase": "WouldPause", "warned_at": "-20m", "pause_at": "-5m", "warned_mode": "dry-run"},
    ]
)


KEYS = (EXEMPT, HOLD, ACK_UNTIL, f"{PREFIX}window", f"{PREFIX}paused")


def told_annotations(tape: Tape, texts: Sequence[str]) -> dict[str, str]:
    """Tell what is written on one object: texts under keys that we read, and under some others."""
    keys = (*KEYS, *KEYS, *texts)
    return {tape.pick(keys): tape.pick(texts) for _ in range(tape.number(0, 6))}


def hostile_annotations(objects: int) -> st.SearchStrategy[list[dict[str, str]]]:
    """Return what is written on so many objects, any text at all."""

    def told(texts: list[str], choices: bytes) -> list[dict[str, str]]:
        tape = Tape(choices)
        return [told_annotations(tape, texts) for _ in range(objects)]

    length = 13 * objects
    texts = st.lists(HOSTILE_TEXT, min_size=1, max_size=4)
    return st.builds(told, texts, st.binary(min_size=length, max_size=length))
