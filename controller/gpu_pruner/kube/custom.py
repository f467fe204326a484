"""Kinds that only the settings know: where they live, and what their objects say.

Answers for an object of such a kind what size it asks for, whether its desired state says: no pods,
and whether it is back, by the paths and expressions of its lever. `observe` and `act` both ask
here, so that they mean the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from gpu_pruner.kube.resources import Resource
from gpu_pruner.kube.wire import Owner, OwnerSpec, OwnerStatus
from gpu_pruner.settings.expressions import Expression, Path
from gpu_pruner.settings.levers import CustomLever


class CustomOwner(Owner, frozen=True, gc=False):
    """An object whose fields nobody here knows.

    The fields that other kinds have are left empty: a field of the same name may mean something
    else there.
    """

    spec: OwnerSpec | None = msgspec.field(default=None, name="spec of a known kind")
    status: OwnerStatus | None = msgspec.field(default=None, name="status of a known kind")
    told_spec: object = msgspec.field(default=None, name="spec")
    told_status: object = msgspec.field(default=None, name="status")

    @property
    def body(self) -> Mapping[str, object]:
        """Return it as paths and expressions see it."""
        notes = {"annotations": self.metadata.annotations, "labels": self.metadata.labels}
        return {"metadata": notes, "spec": self.told_spec, "status": self.told_status}


@dataclass(frozen=True, slots=True)
class CustomKind:
    """A kind as the settings describe it."""

    lever: CustomLever

    @property
    def resource(self) -> Resource:
        """Return where its objects live."""
        one = self.lever
        return Resource(group=one.group, version=one.version, plural=one.plural, kind=one.kind)

    def size(self, owner: Owner) -> int | None:
        """Return the desired size; None for a kind without one, and where it is not set."""
        if self.lever.replicas is None or not isinstance(owner, CustomOwner):
            return None
        found = Path.parse(self.lever.replicas).find(owner.body)
        return found if isinstance(found, int) and not isinstance(found, bool) else None

    def is_halted(self, owner: Owner) -> bool:
        """Return whether the desired state says: no pods."""
        if self.lever.paused_when is None:
            return self.size(owner) == 0
        return _holds(self.lever.paused_when, owner)

    def is_unchanged_since(self, owner: Owner, generation: int) -> bool:
        """Return whether nobody has changed what is wanted since we paused it.

        Nobody tells who wrote a field of a kind that we do not know; its generation counts every
        change, of which ours was at most one.

        Args:
            owner: the object.
            generation: of the object right before our pause.
        """
        return (owner.metadata.generation or 0) - generation in {0, 1}

    def is_ready(self, owner: Owner) -> bool | None:
        """Return whether it is back after a restore; None where the settings do not tell how."""
        return None if self.lever.ready_when is None else _holds(self.lever.ready_when, owner)


def _holds(expression: str, owner: Owner) -> bool:
    return isinstance(owner, CustomOwner) and Expression.parse(expression).holds(owner.body)
