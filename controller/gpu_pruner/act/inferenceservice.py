"""Pausing an InferenceService: KServe's stop annotation, or what its older releases understand.

The controller tells that it honours the annotation by the ``Stopped`` condition. Without it, a
service on Knative is drained (``minReplicas: 0``); one in Standard mode cannot be stopped, because
there a zero is taken for a one (kserve/kserve#3514). Called through `act.levers`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from typing_extensions import override

from gpu_pruner.act.lever import OURS
from gpu_pruner.act.patches import patch_of
from gpu_pruner.act.pause_record import encode
from gpu_pruner.act.stopping import StopLever
from gpu_pruner.kube.halting import (
    can_be_stopped,
    drained_by,
    is_drained,
    is_frozen,
    is_stopped,
    knows_stop,
)
from gpu_pruner.kube.resources import INFERENCESERVICES
from gpu_pruner.kube.wire import Owner
from gpu_pruner.model.annotations import PAUSED
from gpu_pruner.model.book import PauseRecord


@dataclass(frozen=True, slots=True)
class InferenceServiceLever(StopLever):
    """Stops where the controller knows how to, else drains."""

    @override
    def obstacle(self, live: Owner) -> str:
        """Return why this object must not be paused now, as a sentence; empty where it may."""
        # Named, because a dataclass with slots is another class than the one super() means.
        if stopped := StopLever.obstacle(self, live):
            return stopped
        if is_frozen(live):
            return "its controller is told to leave it alone (disable-auto-update)"
        if not can_be_stopped(live, self.resource):
            return (
                "its controller does not honour the stop annotation: KServe before 0.16, "
                "or a mode that it does not stop"
            )
        if not knows_stop(live) and _least(live) == 0:
            return "it scales to zero by itself, and something keeps it awake"
        return ""

    @override
    def size(self, live: Owner) -> int | None:
        """Return the former ``minReplicas`` where the service is to be drained, if it is set."""
        return None if knows_stop(live) else _least(live)

    @override
    def former(self, live: Owner) -> Mapping[str, str]:
        """Return the annotation's value, where the annotation is what stops it."""
        return StopLever.former(self, live) if knows_stop(live) else {}

    @override
    def is_pause_of(self, live: Owner, record: PauseRecord) -> bool:
        """Return whether nobody else is known to have stopped or drained it since."""
        if is_stopped(live):
            return StopLever.is_pause_of(self, live, record)
        return drained_by(live) in OURS

    @override
    def pause_patch(self, live: Owner, record: PauseRecord) -> Mapping[str, object]:
        """Return the one patch that stops or drains the service and remembers why."""
        if knows_stop(live):
            return StopLever.pause_patch(self, live, record)
        return patch_of(live, annotations={PAUSED: encode(record)}, spec=_drain(0))

    @override
    def restore_patch(self, live: Owner, record: PauseRecord) -> Mapping[str, object]:
        """Return the one patch that undoes what was done, and ends the record."""
        if is_drained(live) and not is_stopped(live):
            return patch_of(live, annotations={PAUSED: None}, spec=_drain(record.replicas))
        return StopLever.restore_patch(self, live, record)


def _least(live: Owner) -> int | None:
    predictor = live.spec.predictor if live.spec else None
    return predictor.min_replicas if predictor else None


def _drain(least: int | None) -> Mapping[str, object]:
    return {"predictor": {"minReplicas": least}}


INFERENCE_SERVICE = InferenceServiceLever(INFERENCESERVICES)
