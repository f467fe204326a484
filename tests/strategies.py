"""All Hypothesis strategies: devices, workloads, worlds and wishes, as `support.world` tells them.

Most of what they draw is healthy and idle, so that plans do act; the rest is everything that should
stop them.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from gpu_pruner.model.annotations import ACK_UNTIL, EXEMPT, HOLD, PREFIX

Spec = dict[str, Any]

WINDOW_MINUTES = 35
MINUTES_AGO = st.integers(min_value=0, max_value=80).map(lambda n: f"-{n}m")
DUE = {"phase": "Warned", "warned_at": "-20m", "pause_at": "-1m", "warned_mode": "scale-down"}
NOMINATED = {"phase": "Nominated", "confirmations": 1, "nominated_at": "-5m"}

NAMESPACES = ("team-a", "team-b", "team-c", "team-d", "team-e", "team-f")
KINDS = ("Deployment", "StatefulSet", "Notebook")

HOSTILE_TEXT = st.text(max_size=60) | st.sampled_from(
    ["", " ", "TRUE", "\x00", "\u202eeurt", "9" * 400, "2026-13-45T99:99:99Z", "2026-01-01",
     "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "{}", "null", "<!channel>"]
)  # fmt: skip


@st.composite
def stretches(draw: st.DrawFn) -> str:
    """A stretch within the last 80 minutes, up to 20 minutes long."""
    begin = draw(st.integers(min_value=1, max_value=80))
    lasting = draw(st.integers(min_value=1, max_value=20))
    return f"-{begin}m to -{max(0, begin - lasting)}m"


def _values(quiet: float, loud: st.SearchStrategy[float]) -> st.SearchStrategy[object]:
    return st.one_of(
        st.just(quiet),
        loud,
        st.builds("{} at {}".format, loud, MINUTES_AGO),
        st.builds("{} from {}".format, loud, stretches()),
        st.builds("nan at {}".format, MINUTES_AGO),
        st.just("absent"),
    )


ODDITIES: dict[str, st.SearchStrategy[object]] = {
    "engine": _values(0, st.sampled_from([0.0001, 0.0099, 0.01, 0.0101, 0.4, 1.0, 1.05, 90.0])),
    "util": _values(0, st.sampled_from([0.5, 1, 4, 5, 99, 100, 218322032, -1])),
    "encoder": _values(0, st.sampled_from([1, 60, 100])),
    "energy": st.sampled_from(["frozen", "absent", "moving"]),
    "temperature": st.sampled_from(["frozen", "moving"]),
    "gap": stretches(),
    "previous": st.builds("team-b/old until {}".format, MINUTES_AGO),
    "unlabelled": stretches(),
    "labels": st.sampled_from(["native", "none"]),
    "replica": st.just("0"),
    "node": st.sampled_from(["node-2", "node-1.example.org", "3f1c2d"]),
}


@st.composite
def devices(draw: st.DrawFn) -> Spec:
    """A device: idle in most draws, with up to three oddities in the others."""
    if draw(st.integers(min_value=0, max_value=3)):
        return {}
    names = draw(st.lists(st.sampled_from(sorted(ODDITIES)), min_size=1, max_size=3, unique=True))
    return {name: draw(ODDITIES[name]) for name in names}


@st.composite
def pods(draw: st.DrawFn) -> Spec:
    """A pod: long Ready in most draws."""
    gpus = draw(st.lists(devices(), min_size=1, max_size=3))
    spec: Spec = {"gpus": gpus, "node": draw(st.sampled_from(["node-1", "node-1", "node-2"]))}
    match draw(st.integers(min_value=0, max_value=9)):
        case 0:
            spec["ready"] = draw(MINUTES_AGO)
        case 1:
            spec |= {"phase": "Pending", "created": draw(st.sampled_from(["-5m", "-3h"]))}
        case 2:
            spec["terminating"] = True
        case 3:
            most = draw(st.integers(min_value=len(gpus), max_value=4))
            spec["requests"] = {"nvidia.com/gpu": most}
        case _:
            pass
    return spec


@st.composite
def workloads(draw: st.DrawFn) -> Spec:
    """A workload on the edge of a warning or a pause."""
    return {
        "kind": draw(st.sampled_from(KINDS)),
        "namespace": draw(st.sampled_from(NAMESPACES)),
        "pods": draw(st.lists(pods(), min_size=1, max_size=3)),
        "book": draw(st.sampled_from([DUE, DUE, NOMINATED])),
    }


def worlds(*, most: int = 4) -> st.SearchStrategy[dict[str, Spec]]:
    """Several workloads by name."""
    return st.lists(workloads(), min_size=1, max_size=most).map(
        lambda found: {f"w-{number}": spec for number, spec in enumerate(found)}
    )


@st.composite
def idle_workloads(draw: st.DrawFn) -> Spec:
    """A workload about which there is no doubt: idle, on its way, or already paused."""
    spec: Spec = {
        "kind": draw(st.sampled_from(KINDS)),
        "namespace": draw(st.sampled_from(NAMESPACES)),
        "gpus": draw(st.sampled_from([1, 1, 1, 2, 4])),
    }
    match draw(st.sampled_from(["new", "nominated", "due", "due", "warned", "paused"])):
        case "nominated":
            spec["book"] = NOMINATED
        case "due":
            ago = draw(st.integers(min_value=0, max_value=9))
            spec["book"] = DUE | {"pause_at": f"-{ago}m"}
        case "warned":
            ahead = draw(st.integers(min_value=1, max_value=30))
            spec["book"] = DUE | {"pause_at": f"{ahead}m"}
        case "paused":
            ago = draw(st.integers(min_value=1, max_value=80))
            spec["book"] = {"phase": "Paused", "paused_at": f"-{ago}m", "gpus": spec["gpus"]}
            spec |= {"pods": [], "owner": {"halted": True}}
        case _:
            pass
    return spec


def idle_worlds() -> st.SearchStrategy[dict[str, Spec]]:
    """Up to twelve workloads that compete for the budget."""
    return st.lists(idle_workloads(), min_size=1, max_size=12).map(
        lambda found: {f"w-{number:02d}": spec for number, spec in enumerate(found)}
    )


@st.composite
def wishes(draw: st.DrawFn) -> Spec:
    """A wish to be left alone: what to merge into a workload, and into its namespace."""
    word = draw(st.sampled_from(["true", "True", " true ", "yes", "2026-06-01T00:00:00Z", "1h"]))
    where = draw(st.sampled_from(["root", "root label", "pod", "namespace", "intent", "keep",
                                  "ack", "hold", "held namespace", "protected"]))  # fmt: skip
    told: dict[str, tuple[Spec, Spec]] = {
        "root": ({"owner": {"annotations": {EXEMPT: word}}}, {}),
        "root label": ({"owner": {"labels": {EXEMPT: word}}}, {}),
        "pod": ({"pods": [{"annotations": {EXEMPT: word}}]}, {}),
        "namespace": ({}, {"annotations": {EXEMPT: word}}),
        "intent": ({"intent": {"exempt": True}}, {}),
        "keep": ({"intent": {"keep_until": draw(st.sampled_from(["20m", "23h", "900d"]))}}, {}),
        "ack": ({"owner": {"annotations": {ACK_UNTIL: "2026-01-01T14:00:00+01:00"}}}, {}),
        "hold": ({"owner": {"annotations": {HOLD: word}}}, {}),
        "held namespace": ({}, {"labels": {HOLD: word}}),
        "protected": ({"namespace": "kube-system"}, {}),
    }
    workload, namespace = told[where]
    return {"workload": workload, "namespace": namespace}


BOOKS = st.sampled_from(
    [
        {},
        NOMINATED,
        DUE,
        DUE | {"frozen_since": "-5m"},
        {"phase": "WouldPause", "warned_at": "-20m", "pause_at": "-5m", "warned_mode": "dry-run"},
    ]
)


def hostile_annotations() -> st.SearchStrategy[dict[str, str]]:
    """Any text under the keys that we read, and under some that we do not."""
    keys = st.sampled_from([EXEMPT, HOLD, ACK_UNTIL, f"{PREFIX}window", f"{PREFIX}paused"])
    return st.dictionaries(keys | HOSTILE_TEXT, HOSTILE_TEXT, max_size=6)
