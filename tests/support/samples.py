"""Lines of exporter pages that were published in bug reports, names replaced, values as published."""

# ruff: noqa: E501 - the lines stand as they were published

from __future__ import annotations

SLICES = """\
DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu="0",UUID="GPU-aaaa",pci_bus_id="00000000:1A:00.0",device="nvidia0",modelName="NVIDIA H100 80GB HBM3",GPU_I_PROFILE="1g.10gb",GPU_I_ID="7",Hostname="node-a",DCGM_FI_DRIVER_VERSION="535.129.03",container="kserve-container",namespace="ns-a",pod="predictor-a"} 0.000000
DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu="0",UUID="GPU-aaaa",pci_bus_id="00000000:1A:00.0",device="nvidia0",modelName="NVIDIA H100 80GB HBM3",GPU_I_PROFILE="1g.10gb",GPU_I_ID="8",Hostname="node-a",DCGM_FI_DRIVER_VERSION="535.129.03"} 0.000000
DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu="0",UUID="GPU-aaaa",pci_bus_id="00000000:1A:00.0",device="nvidia0",modelName="NVIDIA H100 80GB HBM3",GPU_I_PROFILE="1g.10gb",GPU_I_ID="9",Hostname="node-a",DCGM_FI_DRIVER_VERSION="535.129.03",container="kserve-container",namespace="ns-a",pod="predictor-b"} 0.000000
"""
"""MIG slices of an H100, one of them free (dcgm-exporter issue 512)."""

TWO_AND_A_FREE_ONE = """\
DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu="0",UUID="GPU-bbbb0",pci_bus_id="00000000:4E:00.0",device="nvidia0",modelName="NVIDIA L40S",Hostname="node-b",container="main",namespace="ns-b",pod="tensorflow-0"} 0.000000
DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu="1",UUID="GPU-bbbb1",pci_bus_id="00000000:62:00.0",device="nvidia1",modelName="NVIDIA L40S",Hostname="node-b",container="main",namespace="ns-b",pod="tensorflow-0"} 0.000000
DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu="2",UUID="GPU-bbbb2",pci_bus_id="00000000:C9:00.0",device="nvidia2",modelName="NVIDIA L40S",Hostname="node-b"} 0.000000
"""
"""Two idle GPUs of one pod, a third unallocated (DCGM issue 226)."""

OLD_NAMES = """\
dcgm_fi_prof_gr_engine_active{gpu="4",uuid="GPU-cccc",device="nvidia4",modelName="NVIDIA A100 80GB PCIe",container_name="c",pod_name="p",pod_namespace="ns-c"} 0.008246
dcgm_fi_prof_gr_engine_active{gpu="5",uuid="GPU-cccd",device="nvidia5",modelName="NVIDIA A100 80GB PCIe",container_name="",pod_name="",pod_namespace=""} 0.000000
"""
"""The old names, with light real work (dcgm-exporter issue 272)."""

PLAIN = """\
DCGM_FI_DEV_GPU_UTIL{UUID="GPU-dddd",gpu="0",device="nvidia0",Hostname="node-d",container="main",namespace="default",pod="pod1"} 0
"""
"""Utilisation alone (labels of dcgm-exporter issues 340 and 363)."""

DRA = """\
DCGM_FI_PROF_PCIE_RX_BYTES{gpu="0",UUID="GPU-eeee",pci_bus_id="00000000:01:00.0",device="nvidia0",modelName="NVIDIA GH200 96GB HBM3",Hostname="node-e",container="ctr",dra_claim_name="single-gpu",dra_claim_namespace="gpu-test3",dra_device_name="gpu-0",dra_driver_name="gpu.nvidia.com",dra_pool_name="node-e",namespace="gpu-test3",pod="pod1"} 23792
"""
"""Dynamic resource allocation (Kubernetes documentation)."""

SHARED = """\
DCGM_FI_PROF_GR_ENGINE_ACTIVE{pod="gpu-workload-1",gpu="0"} 0.714
DCGM_FI_PROF_GR_ENGINE_ACTIVE{pod="gpu-workload-2",gpu="0"} 0.714
DCGM_FI_PROF_GR_ENGINE_ACTIVE{pod="gpu-workload-3",gpu="0"} 0.714
DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-ffff",pci_bus_id="00000000:00:05.0",device="nvidia0",modelName="NVIDIA A100-SXM4-80GB",Hostname="node-f",container="burn",namespace="default",pod="burn-1",vgpu="1"} 15866
DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-ffff",pci_bus_id="00000000:00:05.0",device="nvidia0",modelName="NVIDIA A100-SXM4-80GB",Hostname="node-f",container="vllm",namespace="inference",pod="vllm-1",vgpu="3"} 15866
"""
"""One value for all sharers, without UUID as reported (587); replicas of an MPS share (432)."""

EMPTY_LABELS_AND_A_BLANK = """\
DCGM_FI_DEV_SM_CLOCK{gpu="0", UUID="GPU-4444",container="",namespace="",pod=""} 139
DCGM_FI_DEV_MEM_CLOCK{gpu="0", UUID="GPU-4444",container="",namespace="",pod=""} 405
DCGM_FI_DEV_MEMORY_TEMP{gpu="0", UUID="GPU-4444",container="",namespace="",pod=""} 9223372036854775794
DCGM_FI_DEV_GPU_TEMP{gpu="0", UUID="GPU-4444",container="",namespace="",pod=""} 9223372036854775794
"""
"""Exporter 2.x (its README); the last line is the third one's blank on a metric that we read."""

KUBE_STATE = """\
kube_pod_container_resource_requests{container="pod1_con1",namespace="ns1",node="",pod="pod1",resource="nvidia_com_gpu",unit="integer",uid="uid1"} 1
kube_node_status_capacity{node="127.0.0.1",resource="nvidia_com_gpu",unit="integer"} 4
"""
"""What is no telemetry of GPUs (kube-state-metrics)."""

GARBAGE = """\
DCGM_FI_DEV_GPU_UTIL{gpu="2",UUID="GPU-6666",device="nvidia2",modelName="NVIDIA H100 80GB HBM3",Hostname="node-j",namespace="ns-j",pod="job-worker-2"} 218322032
DCGM_FI_DEV_FB_USED{gpu="2",UUID="GPU-6666",device="nvidia2",modelName="NVIDIA H100 80GB HBM3",Hostname="node-j",namespace="ns-j",pod="job-worker-2"} 0
DCGM_FI_DEV_POWER_USAGE{gpu="2",UUID="GPU-6666",device="nvidia2",modelName="NVIDIA H100 80GB HBM3",Hostname="node-j",namespace="ns-j",pod="job-worker-2"} 76.400000
"""
"""A value that no GPU has (skypilot issue 10368, dcgm-exporter issue 418)."""

EVERYTHING = (
    SLICES
    + TWO_AND_A_FREE_ONE
    + OLD_NAMES
    + PLAIN
    + DRA
    + SHARED
    + EMPTY_LABELS_AND_A_BLANK
    + KUBE_STATE
    + GARBAGE
)
