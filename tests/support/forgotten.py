"""What becomes of pauses whose GPUWorkloads somebody deletes."""

from __future__ import annotations

from support.product import Product, until

from gpu_pruner.kube.resources import GPUWORKLOADS
from gpu_pruner.sim.tree import JsonObject, elements, mapping, text


def books(product: Product, namespace: str) -> list[JsonObject]:
    """Return the GPUWorkloads of a namespace."""
    return elements(product.get(GPUWORKLOADS.path(namespace=namespace)), "items")


def forget(product: Product, namespace: str) -> None:
    """Delete the GPUWorkloads of a namespace, and wait until the controller has made them anew."""
    before = {text(one, "metadata", "uid") for one in books(product, namespace)}
    product.lab.kubectl("delete", "gpuworkloads", "--all", "-n", namespace)

    def known() -> bool:
        told = [one for one in books(product, namespace) if mapping(one, "status")]
        new = {text(one, "metadata", "uid") for one in told} - before
        return len(new) == len(told) == len(before)

    until(known)
