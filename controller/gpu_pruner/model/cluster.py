"""The cluster as one consistent value: what the reflectors hold at one moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gpu_pruner.model.book import Book
from gpu_pruner.model.units import Seconds
from gpu_pruner.model.workload import (
    Intent,
    NamespaceRecord,
    NodeRecord,
    OwnerObject,
    PodRecord,
    RootRef,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bookkeeping:
    """One GPUWorkload: which root it is about, what people want, what we remember."""

    root: RootRef
    """With the uid of `spec.rootRef`: a root with another uid is another workload."""
    intent: Intent = Intent()
    book: Book = Book()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterView:
    """What the API server said, newest known state of every watched kind."""

    pods: tuple[PodRecord, ...] = ()
    """Pods that request GPUs, in every phase."""
    nodes: Mapping[str, NodeRecord] = field(default_factory=dict)
    """By name."""
    namespaces: Mapping[str, NamespaceRecord] = field(default_factory=dict)
    """By name."""
    owners: Mapping[str, OwnerObject] = field(default_factory=dict)
    """By uid: everything that can stand between a pod and its root, or be the root."""
    books: Mapping[str, Bookkeeping] = field(default_factory=dict)
    """By root uid."""
    stale_seconds: Seconds = 0.0
    """Longest time since any reflector last heard from the API server."""
    clock_skew_seconds: Seconds = 0.0
    """The API server's Date minus ours; 0 where the answer came within the Date's second."""
    books_available: bool = True
    """False where the GPUWorkload CRD is not installed."""
    missing_kinds: frozenset[str] = frozenset()
    """Kinds whose API is absent (CRD not installed) or forbidden; their levers are off."""
