"""The failures that an API server answers with, as `Status` objects of the same shape.

The shape (``kind: Status``, ``reason``, ``code``, ``details``) is the API's own; the sentences
are ours. Raised by `store`, `writes` and `api`; turned into an answer by `api` alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus

from gpu_pruner.sim.resources import Resource
from gpu_pruner.sim.tree import JsonObject


@dataclass(slots=True)
class ApiFailure(Exception):
    """A request that the API server refuses."""

    code: int
    reason: str
    """The API's machine word, for example ``NotFound``."""
    message: str
    details: JsonObject | None = None
    retry_after_seconds: int | None = None

    def status(self) -> JsonObject:
        """Return the body of the answer, also the object of an ERROR watch event."""
        body: JsonObject = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
        }
        if self.details is not None or self.retry_after_seconds is not None:
            details = dict(self.details or {})
            if self.retry_after_seconds is not None:
                details["retryAfterSeconds"] = self.retry_after_seconds
            body["details"] = details
        body["code"] = self.code
        return body


def _details(resource: Resource, name: str) -> JsonObject:
    details: JsonObject = {"name": name}
    if resource.group:
        details["group"] = resource.group
    details["kind"] = resource.plural
    return details


def not_found(resource: Resource, name: str) -> ApiFailure:
    """Return 404 ``NotFound``: the kind exists, the object does not."""
    return ApiFailure(
        HTTPStatus.NOT_FOUND,
        "NotFound",
        f'{resource.qualified} "{name}" not found',
        _details(resource, name),
    )


def already_exists(resource: Resource, name: str) -> ApiFailure:
    """Return 409 ``AlreadyExists``: a create whose name is taken."""
    return ApiFailure(
        HTTPStatus.CONFLICT,
        "AlreadyExists",
        f'{resource.qualified} "{name}" already exists',
        _details(resource, name),
    )


def conflict(resource: Resource, name: str, *, why: str) -> ApiFailure:
    """Return 409 ``Conflict``: a precondition (resourceVersion, or uid of a delete) failed."""
    return ApiFailure(
        HTTPStatus.CONFLICT,
        "Conflict",
        f'Operation cannot be fulfilled on {resource.qualified} "{name}": {why}',
        _details(resource, name),
    )


def invalid(resource: Resource, name: str, *, field: str, why: str) -> ApiFailure:
    """Return 422 ``Invalid``: the object breaks a rule of its kind at a field."""
    details = _details(resource, name)
    details["kind"] = resource.kind
    details["causes"] = [{"reason": "FieldValueInvalid", "message": why, "field": field}]
    return ApiFailure(
        HTTPStatus.UNPROCESSABLE_ENTITY,
        "Invalid",
        f'{resource.kind}{"." + resource.group if resource.group else ""} "{name}" is invalid: '
        f"{field}: {why}",
        details,
    )


def bad_request(why: str) -> ApiFailure:
    """Return 400 ``BadRequest``."""
    return ApiFailure(HTTPStatus.BAD_REQUEST, "BadRequest", why)


def expired(why: str) -> ApiFailure:
    """Return 410 ``Expired``: a resourceVersion or continue token that is too old."""
    return ApiFailure(HTTPStatus.GONE, "Expired", why)


def unauthorized() -> ApiFailure:
    """Return 401 ``Unauthorized``: no token, or one that the server does not know."""
    return ApiFailure(HTTPStatus.UNAUTHORIZED, "Unauthorized", "Unauthorized")


def not_allowed(what: str) -> ApiFailure:
    """Return 405 ``MethodNotAllowed``."""
    return ApiFailure(
        HTTPStatus.METHOD_NOT_ALLOWED, "MethodNotAllowed", f"{what} is not supported here"
    )


def unsupported_patch(content_type: str) -> ApiFailure:
    """Return 415 ``UnsupportedMediaType``, as for a strategic merge patch of a custom resource."""
    return ApiFailure(
        HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        "UnsupportedMediaType",
        f"the patch type {content_type} is not supported here",
    )
