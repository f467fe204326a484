"""Pausing an LLMInferenceService: KServe's stop annotation. Called through `act.levers`.

Prefill, decode, scheduler and multi-node groups are all its own and stop together (source:
kserve/kserve v0.17.0, ``pkg/controller/v1alpha2/llmisvc``). Older releases, which ignore the
annotation, do not serve the version of the kind that is asked for.
"""

from __future__ import annotations

from gpu_pruner.act.stopping import StopLever
from gpu_pruner.kube.resources import LLMINFERENCESERVICES

LLM_INFERENCE_SERVICE = StopLever(LLMINFERENCESERVICES)
