"""The flags of the lab's components: what envtest and kwokctl use, and everything real switched on.

RBAC, the ServiceAccount and PodSecurity admission plugins (both on by default) and the audit log.
All certificates and files lie in one directory, which is also where etcd keeps its data.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

CONTROLLERS = (
    "clusterrole-aggregation-controller",
    "cronjob-controller",
    "daemonset-controller",
    "deployment-controller",
    "disruption-controller",
    "endpointslice-controller",
    "garbage-collector-controller",
    "horizontal-pod-autoscaler-controller",
    "job-controller",
    "namespace-controller",
    "replicaset-controller",
    "resourcequota-controller",
    "root-ca-certificate-publisher-controller",
    "serviceaccount-controller",
    "serviceaccount-token-controller",
    "statefulset-controller",
    "validatingadmissionpolicy-status-controller",
)
"""Without node-lifecycle-controller, so that nodes need no heartbeats."""


def etcd(here: Path, *, port: int, peer: int) -> Sequence[str]:
    return (
        "--name=lab",
        f"--data-dir={here / 'etcd'}",
        f"--listen-client-urls=http://127.0.0.1:{port}",
        f"--advertise-client-urls=http://127.0.0.1:{port}",
        f"--listen-peer-urls=http://127.0.0.1:{peer}",
        f"--initial-advertise-peer-urls=http://127.0.0.1:{peer}",
        f"--initial-cluster=lab=http://127.0.0.1:{peer}",
        "--unsafe-no-fsync",
        "--log-level=warn",
    )


def apiserver(here: Path, *, etcd_port: int, port: int) -> Sequence[str]:
    return (
        f"--etcd-servers=http://127.0.0.1:{etcd_port}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        f"--secure-port={port}",
        "--endpoint-reconciler-type=none",
        "--service-cluster-ip-range=10.0.0.0/24",
        f"--tls-cert-file={here / 'apiserver.crt'}",
        f"--tls-private-key-file={here / 'apiserver.key'}",
        f"--client-ca-file={here / 'ca.crt'}",
        "--authorization-mode=RBAC",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={here / 'service-account.key'}",
        f"--service-account-signing-key-file={here / 'service-account.key'}",
        f"--audit-policy-file={here / 'audit-policy.yaml'}",
        f"--audit-log-path={here / 'audit.log'}",
        "--audit-log-maxsize=4096",  # MB: one file, however long the tests run
        "--profiling=false",
    )


def controllers(here: Path, kubeconfig: Path) -> Sequence[str]:
    return (
        f"--kubeconfig={kubeconfig}",
        f"--root-ca-file={here / 'ca.crt'}",
        f"--service-account-private-key-file={here / 'service-account.key'}",
        "--use-service-account-credentials",
        f"--controllers={','.join(CONTROLLERS)}",
        "--horizontal-pod-autoscaler-sync-period=1s",
        "--kube-api-qps=1000",
        "--kube-api-burst=2000",
        "--leader-elect=false",
        "--secure-port=0",
    )


def scheduler(kubeconfig: Path) -> Sequence[str]:
    return (
        f"--kubeconfig={kubeconfig}",
        "--kube-api-qps=1000",
        "--kube-api-burst=2000",
        "--leader-elect=false",
        "--secure-port=0",
    )
