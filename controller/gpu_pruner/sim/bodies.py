"""The bodies of requests: JSON of the format and the kind that the path asks for.

Imitates the refusals of the API server: 415 for another format, 400 for what is no JSON, no object,
or of another kind. Called by `api`.
"""

from __future__ import annotations

import msgspec

from gpu_pruner.sim.exchange import JSON, Exchange
from gpu_pruner.sim.failures import bad_request, unsupported_media
from gpu_pruner.sim.resources import Resource
from gpu_pruner.sim.tree import JsonObject, mapping, text


def decoded_body(body: bytes) -> object:
    """Decode a body of any shape.

    Raises:
        ApiFailure: 400, it is no JSON.
    """
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError as error:
        raise bad_request(f"the body is not JSON: {error}"[:200]) from error


def object_body(exchange: Exchange) -> JsonObject:
    """Return the object that a request carries.

    Raises:
        ApiFailure: 400, or 415 for another format than JSON.
    """
    kind = exchange.header("Content-Type").partition(";")[0].strip()
    if kind not in {"", JSON}:
        raise unsupported_media(kind)
    decoded = decoded_body(exchange.body)
    if not isinstance(decoded, dict):
        raise bad_request("the body is not an object")
    return mapping(decoded)


def object_of_kind(resource: Resource, exchange: Exchange) -> JsonObject:
    """Return the object, which is of the kind of its path, and says so where that is a custom one.

    Raises:
        ApiFailure: 400, or 415 for another format than JSON.
    """
    decoded = object_body(exchange)
    stated = (text(decoded, "apiVersion"), text(decoded, "kind"))
    says_nothing = stated == ("", "") and not resource.custom
    if not says_nothing and stated != (resource.api_version, resource.kind):
        raise bad_request(f"{stated[0]} {stated[1]} cannot be handled as a {resource.kind}")
    return decoded
