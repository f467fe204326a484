"""What behaves differently from the Rust tool, each with its reason: told by `migrate`.

What is wrong there is not copied here. A difference is told where it concerns what was given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

Given: TypeAlias = Mapping[str, object]
"""Parameter to value, those that were given; variables by their names."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that is done differently."""

    about: str
    ours: str
    why: str
    applies: Callable[[Given], bool] = lambda _: True

    @property
    def line(self) -> str:
        """Return it in one line."""
        return f"{self.about}: {self.ours} ({self.why})"


def _lacks(name: str) -> Callable[[Given], bool]:
    return lambda given: name not in given


def _has(*names: str) -> Callable[[Given], bool]:
    return lambda given: any(name in given for name in names)


def _bare_querier(given: Given) -> bool:
    url = str(given.get("prometheus_url", ""))
    return "thanos-querier" in url and ":909" not in url


def _no_leader_worker_sets(given: Given) -> bool:
    kinds = given.get("enabled_resources")
    return isinstance(kinds, frozenset) and "LeaderWorkerSet" not in kinds


DIFFERENCES: tuple[Difference, ...] = (
    Difference(
        "idleness",
        "a workload is idle only if every GPU of every pod of it is",
        "one idle GPU of eight convicted the whole pod, one idle replica the whole Deployment",
    ),
    Difference(
        "missing data",
        "samples must cover the window, be fresh, and come from telemetry that moves; else nothing "
        "is done",
        "a series that had stopped half an hour ago convicted its pod",
    ),
    Difference(
        "signals",
        "video, copying and memory traffic count as work, and no signal hides another",
        "only engine activity was asked, and a stuck zero of it beat a utilisation of 99",
    ),
    Difference("age of a pod", "counted from Ready", "a pod that had been pending was due at once"),
    Difference(
        "warning",
        "always, with the notice in between, as an Event and a GPUWorkload",
        "without Slack there was neither warning nor notice",
    ),
    Difference(
        "dry run",
        "owners are warned, marked as a rehearsal",
        "a roll-out could not be rehearsed with the people whom it concerns",
    ),
    Difference(
        "amount",
        "at most 5 workloads and 10 % of the GPUs in a cycle, 1 in a namespace (`budget`)",
        "there was no limit",
    ),
    Difference(
        "restoring",
        "the former size is remembered, and `gpu-pruner resume` gives it back",
        "the former size was lost",
    ),
    Difference(
        "volumes",
        "a StatefulSet that deletes its volumes when it shrinks is never paused",
        "scaling it down deleted data",
    ),
    Difference(
        "excluded names",
        "only `protected_namespaces` and exemptions keep a namespace out",
        "namespaces with certain prefixes were exempt without being told",
    ),
    Difference(
        "window", "35 minutes by default, not 30", "two scrapes may be missing", _lacks("duration")
    ),
    Difference(
        "cycle",
        "a minute by default, not 180 seconds",
        "a keep or an end of idleness is seen sooner",
        _lacks("check_interval"),
    ),
    Difference(
        "notice",
        "15 minutes by default, not 300 seconds",
        "five minutes are shorter than a meeting",
        _lacks("ack_grace_period"),
    ),
    Difference(
        "LeaderWorkerSet",
        "switched off, as its letter is not given",
        "it could not be switched off",
        _no_leader_worker_sets,
    ),
    Difference(
        "labels",
        "which labels hold the workload is found out by asking",
        "the wrong choice found nothing, and said so nowhere",
        _lacks("honor_labels"),
    ),
    Difference(
        "--prometheus-token",
        "it is used; it is left out of the settings, so put it into a file for "
        "`prometheus.token_file`, or into PROMETHEUS_TOKEN",
        "the flag was read and ignored",
        _has("prometheus_token"),
    ),
    Difference(
        "PROMETHEUS_TOKEN",
        "it is read, and stays a variable",
        "a secret has no place in a settings file",
        _has("PROMETHEUS_TOKEN"),
    ),
    Difference(
        "login in --prometheus-url",
        "it is left out of the settings; give the URL with it by GPU_PRUNER_PROMETHEUS_URL",
        "a secret has no place in a settings file",
        lambda given: "@" in str(given.get("prometheus_url", "")),
    ),
    Difference(
        "--prometheus-url",
        "Thanos Querier answers at https, port 9091: `preset: openshift` knows how",
        "the published manifest leaves out both",
        _bare_querier,
    ),
    Difference(
        "--metrics-addr",
        "one listener serves metrics, health and the API",
        "there is one process to look at",
        _has("metrics_addr"),
    ),
    Difference(
        "token for Prometheus",
        "no token is sent that was not configured; on OpenShift `preset: openshift` names it",
        "the ServiceAccount's token was sent to every address, also in plain text",
        _lacks("prometheus_token"),
    ),
    Difference(
        "failures",
        "a daemon goes on after failed queries, tells them, and pauses nothing meanwhile",
        "after seven it did nothing more, and looked alive",
        _has("daemon_mode"),
    ),
)
"""In the order in which they are told."""


def differences(given: Given) -> Iterator[str]:
    """Yield one line for everything that concerns what was given.

    Args:
        given: parameters and variables that were given.
    """
    return (one.line for one in DIFFERENCES if one.applies(given))
