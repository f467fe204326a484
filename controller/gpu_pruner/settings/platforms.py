"""The makes of clusters that have a preset."""

from __future__ import annotations

from enum import StrEnum


class Platform(StrEnum):
    """Makes of clusters that have a preset (`settings.presets`)."""

    OPENSHIFT = "openshift"
    GKE = "gke"
    EKS = "eks"
    AKS = "aks"
