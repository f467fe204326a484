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
        }
        if self.reason:
            body["reason"] = self.reason
        if self.details is not None or self.retry_after_seconds is not None:
            details = dict(self.details or {})
            if self.retry_after_seconds is not None:
                details["retryAfterSeconds"] = self.retry_after_seconds
            body["details"] = details
        body["code"] = self.code
        return body


def _details(resource: Resource, name: str) -> JsonObject:
    details: JsonObject = {"name": name} if name else {}
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


def invalid(
    resource: Resource, name: str, *, field: str, why: str, cause: str = "FieldValueInvalid"
) -> ApiFailure:
    """Return 422 ``Invalid``: the object breaks a rule of its kind at a field."""
    details = _details(resource, name)
    details["kind"] = resource.kind
    details["causes"] = [{"reason": cause, "message": why, "field": field}]
    return ApiFailure(
        HTTPStatus.UNPROCESSABLE_ENTITY,
        "Invalid",
        f'{resource.kind}{"." + resource.group if resource.group else ""} "{name}" is invalid: '
        f"{field}: {why}",
        details,
    )


def invalid_option(field: str, value: str) -> ApiFailure:
    """Return 422 ``Invalid``: a query parameter of a write has a value that there is not."""
    why = f"Unsupported value: {value[:80]!r}"
    cause = {"reason": "FieldValueNotSupported", "message": why, "field": field}
    details: JsonObject = {"group": "meta.k8s.io", "causes": [cause]}
    code = HTTPStatus.UNPROCESSABLE_ENTITY
    return ApiFailure(code, "Invalid", f"the options are invalid: {field}: {why}", details)


def mistyped(resource: Resource, why: str, *, is_patch: bool) -> ApiFailure:
    """Return what a body gets that cannot be decoded: 400, or 422 where it came by a patch."""
    if not is_patch:
        return bad_request(f"{resource.kind} cannot be handled as a {resource.kind}: {why}")
    causes = [{"reason": "FieldValueInvalid", "message": why, "field": "patch"}]
    code = HTTPStatus.UNPROCESSABLE_ENTITY
    return ApiFailure(code, "Invalid", f"the patch is invalid: {why}", {"causes": causes})


def create_with_version() -> ApiFailure:
    """Return 500 without a reason, which is what a create with a resourceVersion really gets."""
    message = "resourceVersion should not be set on objects to be created"
    return ApiFailure(HTTPStatus.INTERNAL_SERVER_ERROR, "", message)


def forbidden(user: str, what: str, *, details: JsonObject, name: str = "") -> ApiFailure:
    """Return 403 ``Forbidden``.

    Args:
        user: who.
        what: is not allowed, from the verb on.
        details: of the answer.
        name: how the message begins: which object.
    """
    subject = f"{name} is forbidden" if name else "forbidden"
    message = f'{subject}: User "{user}" cannot {what}'
    return ApiFailure(HTTPStatus.FORBIDDEN, "Forbidden", message, details)


def no_such_path() -> ApiFailure:
    """Return 404 ``NotFound``: the group exists, the path in it does not."""
    message = "the server could not find the requested resource"
    return ApiFailure(HTTPStatus.NOT_FOUND, "NotFound", message, {})


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


def unsupported_media(content_type: str) -> ApiFailure:
    """Return 415 ``UnsupportedMediaType``, as for a strategic merge patch of a custom resource."""
    return ApiFailure(
        HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        "UnsupportedMediaType",
        f"a body of type {content_type} is not supported here",
    )
