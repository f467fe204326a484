from __future__ import annotations

from dataclasses import replace

from support.story import told_rules
from support.world import Told

from gpu_pruner.model.verdict import Reason
from gpu_pruner.model.workload import OwnerObject, OwnerRef, PodRecord, RootRef
from gpu_pruner.resolve.owners import Root, obstacle_of, root_of

NOTHING: frozenset[str] = frozenset()


def told(kind: str) -> tuple[PodRecord, dict[str, OwnerObject]]:
    workload = Told("serve", {"kind": kind})
    (pod,) = workload.pods
    return pod, {one.root.uid: one for one in workload.owners()}


def test_the_walk_climbs_to_the_top() -> None:
    pod, owners = told("Deployment")
    root = root_of(pod, owners, missing_kinds=NOTHING)
    assert root.ref == RootRef("Deployment", "team-a", "serve", "apps", "uid-serve-deployment")
    assert root.owner is owners["uid-serve-deployment"]
    assert root.obstacle is None


def test_a_kind_of_another_group_is_another_kind() -> None:
    pod, owners = told("StatefulSet")
    assert pod.owner is not None
    forged = replace(pod, owner=replace(pod.owner, group="apps.example.org"))
    root = root_of(forged, owners, missing_kinds=NOTHING)
    assert (root.owner, root.obstacle) == (None, Reason.UNKNOWN_OWNER)
    assert root.ref.group == "apps.example.org"


def test_a_borrowed_uid_leads_nowhere() -> None:
    """Whoever writes a pod can name any owner: name, kind and namespace have to fit the uid."""
    pod, owners = told("StatefulSet")
    assert pod.owner is not None
    for forged in (
        replace(pod, namespace="team-b"),
        replace(pod, owner=replace(pod.owner, name="other")),
        replace(pod, owner=replace(pod.owner, kind="ReplicaSet")),
    ):
        root = root_of(forged, owners, missing_kinds=NOTHING)
        assert (root.owner, root.obstacle) == (None, Reason.OWNER_MISSING)


def test_a_reference_that_no_controller_writes_leads_nowhere() -> None:
    pod, owners = told("Deployment")
    top = owners["uid-serve-deployment"].root
    straight = OwnerRef(top.group, top.kind, top.name, top.uid)
    root = root_of(replace(pod, owner=straight), owners, missing_kinds=NOTHING)
    assert (root.owner, root.obstacle) == (None, Reason.UNKNOWN_OWNER)
    server, servers = told("StatefulSet")
    below = servers["uid-serve-statefulset"]
    servers |= owners | {below.root.uid: replace(below, owner=straight)}
    root = root_of(server, servers, missing_kinds=NOTHING)
    assert (root.owner, root.obstacle) == (None, Reason.UNKNOWN_OWNER)


def test_owners_in_a_circle_end_the_walk() -> None:
    pod, owners = told("StatefulSet")
    (top,) = owners.values()
    me = OwnerRef("apps", "StatefulSet", "serve", top.root.uid)
    owners[top.root.uid] = replace(top, owner=me)
    assert root_of(pod, owners, missing_kinds=NOTHING).obstacle is Reason.UNKNOWN_OWNER


def test_an_endless_chain_ends_the_walk() -> None:
    pod, _ = told("StatefulSet")
    owners = {
        f"uid-{n}": OwnerObject(
            root=RootRef("StatefulSet", "team-a", f"s-{n}", "apps", f"uid-{n}"),
            owner=OwnerRef("apps", "StatefulSet", f"s-{n + 1}", f"uid-{n + 1}"),
        )
        for n in range(1000)
    }
    first = replace(pod, owner=OwnerRef("apps", "StatefulSet", "s-0", "uid-0"))
    root = root_of(first, owners, missing_kinds=NOTHING)
    assert root.obstacle is Reason.UNKNOWN_OWNER
    assert int(root.ref.name[2:]) < 20


def test_every_kind_that_can_be_paused_has_to_be_enabled() -> None:
    for kind in ("Deployment", "StatefulSet", "Notebook"):
        pod, owners = told(kind)
        root = root_of(pod, owners, missing_kinds=NOTHING)
        assert obstacle_of(root, told_rules()) is None
        others = {"Deployment", "StatefulSet", "Notebook"} - {kind}
        assert obstacle_of(root, told_rules({"enabled_kinds": others})) is Reason.KIND_DISABLED


def test_a_deployment_of_another_group_has_no_lever() -> None:
    ref = RootRef("Deployment", "team-a", "serve", "example.org", "uid")
    root = Root(ref, owner=OwnerObject(root=ref))
    assert obstacle_of(root, told_rules()) is Reason.NO_LEVER
