"""Suspending jobs: Job, JobSet, RayCluster, TrainJob, PyTorchJob. Called through `act.levers`.

Their pods end and begin anew, so that only checkpoints survive: by default the owners of these
kinds are only warned (`settings.levers`). A job that Kueue admitted is stopped through its
Workload instead (`act.kueue`), because Kueue would resume it (kubernetes-sigs/kueue#4799).
"""

from __future__ import annotations

from gpu_pruner.act.switches import SwitchLever
from gpu_pruner.kube.resources import JOBS, JOBSETS, PYTORCHJOBS, RAYCLUSTERS, TRAINJOBS

JOB = SwitchLever(JOBS, ("suspend",))
JOB_SET = SwitchLever(JOBSETS, ("suspend",))
RAY_CLUSTER = SwitchLever(RAYCLUSTERS, ("suspend",))
TRAIN_JOB = SwitchLever(TRAINJOBS, ("suspend",))
PYTORCH_JOB = SwitchLever(PYTORCHJOBS, ("runPolicy", "suspend"))
