"""What is the same on every cluster of one make, so that nobody has to look it up.

A preset stands below everything that is written: file, variables and flags win over each value of
it. With another URL its token is not used: that is for its own server. It holds only what is a fact
of the platform; where the address of the metrics depends on a project, region or workspace, it has
to be given.
"""

from __future__ import annotations

from collections.abc import Mapping

from gpu_pruner.settings.document import Keys
from gpu_pruner.settings.layers import Layer, Origin, Place, Written
from gpu_pruner.settings.platforms import Platform

_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"

PRESETS: Mapping[Platform, Mapping[Keys, object]] = {
    Platform.OPENSHIFT: {
        # Thanos Querier, port 9091: the whole cluster, for who may view cluster monitoring. 9092
        # answers by the namespace label, which is the exporter's: empty for most workloads.
        # https://docs.redhat.com/en/documentation/openshift_container_platform (monitoring APIs)
        ("prometheus", "url"): "https://thanos-querier.openshift-monitoring.svc:9091",
        # It asks for a token of a ServiceAccount with the ClusterRole cluster-monitoring-view.
        ("prometheus", "token_file"): f"{_ACCOUNT}/token",
        # Its certificate is signed by the service CA, which OpenShift mounts beside every token.
        ("prometheus", "ca_file"): f"{_ACCOUNT}/service-ca.crt",
        # NVIDIA's operator installs dcgm-exporter: https://docs.nvidia.com/datacenter/cloud-native
        ("prometheus", "profiles"): ["dcgm"],
    },
    Platform.GKE: {
        # Managed DCGM metrics (on by default since 1.32) and the system metric that every GPU node
        # has: https://cloud.google.com/kubernetes-engine/docs/how-to/dcgm-metrics
        ("prometheus", "profiles"): ["dcgm", "google"],
        # One project's Managed Prometheus holds all of its clusters, told apart by `cluster`:
        # https://cloud.google.com/stackdriver/docs/managed-prometheus
        ("prometheus", "cluster_label"): "cluster",
    },
    Platform.EKS: {
        # NVIDIA's operator or chart installs dcgm-exporter; CloudWatch's own names are not read.
        ("prometheus", "profiles"): ["dcgm"],
    },
    Platform.AKS: {
        # DCGM's names, of which Azure Monitor's keep-list has to let the needed ones through:
        # https://learn.microsoft.com/azure/azure-monitor/containers/prometheus-metrics-scrape-default
        ("prometheus", "profiles"): ["dcgm", "azure"],
        # Its add-on labels every series with the cluster's name, because a workspace is for many.
        ("prometheus", "cluster_label"): "cluster",
    },
}


def layer_of_preset(name: object) -> Layer:
    """Return what a preset says; nothing for a name that is none, which validation refuses."""
    if not isinstance(name, str) or name not in set(Platform):
        return {}
    place = Place(Origin.PRESET, f"preset {name}", for_all=True)
    return {keys: Written(value, place) for keys, value in PRESETS[Platform(name)].items()}
