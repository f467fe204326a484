"""Roots and what owns their size, joined.

Answers what a root looks like with its governor: halted where the governor holds it at no pods,
and with the pause record that stands on the governor, because that is where our pause is written.
A zero of the root's own means nothing then, unless it is our pause from before there was a
governor. Pure. `observe.cluster` calls it once per view.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from gpu_pruner.model.annotations import PAUSED
from gpu_pruner.model.workload import GovernorRecord, OwnerObject

_Place = tuple[str, str, str, str]


def with_governors(
    owners: Mapping[str, OwnerObject], governors: Iterable[GovernorRecord]
) -> Mapping[str, OwnerObject]:
    """Return the owners by uid, each governed one with what its governor says.

    Args:
        owners: by uid.
        governors: of any kind. One whose target is not among the owners is nobody's; of several
            with the same target, the one that holds it at no pods counts, then the first by name.
    """
    waiting = sorted(governors, key=lambda one: (not one.halted, one.ref))
    if not waiting:
        return owners
    by_place = {_place(one): uid for uid, one in owners.items()}
    found = dict(owners)
    seen: set[str] = set()
    for governor in waiting:
        target = governor.target
        uid = target.uid or by_place.get((target.group, target.kind, target.namespace, target.name))
        owner = None if uid is None or uid in seen else owners.get(uid)
        if owner is not None and owner.root.namespace == governor.ref.namespace:
            seen.add(owner.root.uid)
            found[owner.root.uid] = _governed(owner, governor)
    return found


def _place(owner: OwnerObject) -> _Place:
    root = owner.root
    return root.group, root.kind, root.namespace, root.name


def _governed(owner: OwnerObject, governor: GovernorRecord) -> OwnerObject:
    if owner.halted and PAUSED in owner.annotations:
        return owner
    notes = {key: value for key, value in owner.annotations.items() if key != PAUSED}
    if governor.record is not None:
        notes[PAUSED] = governor.record
    return replace(
        owner,
        halted=governor.halted,
        sized_by=owner.sized_by if governor.halted and owner.desired else governor.switched_by,
        paused_by_us=governor.paused_by_us,
        governor=governor.ref.kind,
        governor_uid=governor.ref.uid,
        annotations=notes,
    )
