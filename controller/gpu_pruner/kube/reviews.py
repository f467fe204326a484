"""Who somebody is, and what they may do: asked of the API server, never decided here.

Answers a bearer token with a person (TokenReview), and a person with yes or no
(SubjectAccessReview). It keeps nothing, and no message of it contains a token. Called by `serve`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

import msgspec

from gpu_pruner.errors import ClusterError
from gpu_pruner.kube.resources import Resource

T = TypeVar("T")

TOKEN_REVIEWS = Resource(
    group="authentication.k8s.io",
    version="v1",
    plural="tokenreviews",
    kind="TokenReview",
    namespaced=False,
)
ACCESS_REVIEWS = Resource(
    group="authorization.k8s.io",
    version="v1",
    plural="subjectaccessreviews",
    kind="SubjectAccessReview",
    namespaced=False,
)


OWN_ACCESS_REVIEWS = Resource(
    group="authorization.k8s.io",
    version="v1",
    plural="selfsubjectaccessreviews",
    kind="SelfSubjectAccessReview",
    namespaced=False,
)
OWN_REVIEWS = Resource(
    group="authentication.k8s.io",
    version="v1",
    plural="selfsubjectreviews",
    kind="SelfSubjectReview",
    namespaced=False,
)
"""Served since Kubernetes 1.28."""


class ReviewServer(Protocol):
    """What is needed of `kube.client.ClusterClient`."""

    async def create(
        self, resource: Resource, body: Mapping[str, object], *, namespace: str = ""
    ) -> bytes:
        """Create one object; a review is answered and not stored."""
        ...


class _User(msgspec.Struct, frozen=True, gc=False):
    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] | None = None


class _TokenStatus(msgspec.Struct, frozen=True, gc=False):
    authenticated: bool = False
    user: _User = _User()


class _TokenReview(msgspec.Struct, frozen=True, gc=False):
    status: _TokenStatus = _TokenStatus()


class _OwnStatus(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    user_info: _User = _User()


class _OwnReview(msgspec.Struct, frozen=True, gc=False):
    status: _OwnStatus = _OwnStatus()


class _AccessStatus(msgspec.Struct, frozen=True, gc=False):
    allowed: bool = False
    denied: bool = False


class _AccessReview(msgspec.Struct, frozen=True, gc=False):
    status: _AccessStatus = _AccessStatus()


@dataclass(frozen=True, slots=True, kw_only=True)
class Right:
    """One thing that somebody may do, or not."""

    verb: str
    resource: Resource
    subresource: str = ""
    namespace: str = ""
    """Empty: in all of them."""
    name: str = ""
    """Empty: to every object."""

    @property
    def thing(self) -> str:
        """Return the resource, with its subresource, as a rule of RBAC names it."""
        plural = self.resource.plural
        return f"{plural}/{self.subresource}" if self.subresource else plural


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Somebody whom the API server knows."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


async def owner_of(token: str, server: ReviewServer) -> Person | None:
    """Return whose token it is; None where it is nobody's, or not meant for the API server.

    Raises:
        ClusterError: the API server could not be asked.
    """
    asked = {
        "apiVersion": TOKEN_REVIEWS.api_version,
        "kind": TOKEN_REVIEWS.kind,
        "spec": {"token": token},
    }
    status = _decoded(await server.create(TOKEN_REVIEWS, asked), _TokenReview).status
    if not (status.authenticated and status.user.username):
        return None
    user = status.user
    return Person(name=user.username, uid=user.uid, groups=user.groups, extra=user.extra or {})


async def may(
    person: Person, server: ReviewServer, *, verb: str, resource: Resource, namespace: str
) -> bool:
    """Return whether somebody may do this to every object of a kind in a namespace.

    Raises:
        ClusterError: the API server could not be asked.
    """
    asked = {
        "apiVersion": ACCESS_REVIEWS.api_version,
        "kind": ACCESS_REVIEWS.kind,
        "spec": {
            "user": person.name,
            "uid": person.uid,
            "groups": list(person.groups),
            "extra": {key: list(values) for key, values in person.extra.items()},
            "resourceAttributes": {
                "namespace": namespace,
                "verb": verb,
                "group": resource.group,
                "version": resource.version,
                "resource": resource.plural,
            },
        },
    }
    status = _decoded(await server.create(ACCESS_REVIEWS, asked), _AccessReview).status
    return status.allowed and not status.denied


async def we_may(right: Right, server: ReviewServer) -> bool:
    """Return whether our own account has a right.

    One question for each: a review of all rules at once may be incomplete, and tells so.

    Raises:
        ClusterError: the API server could not be asked.
    """
    asked = {
        "apiVersion": OWN_ACCESS_REVIEWS.api_version,
        "kind": OWN_ACCESS_REVIEWS.kind,
        "spec": {
            "resourceAttributes": {
                "namespace": right.namespace,
                "verb": right.verb,
                "group": right.resource.group,
                "version": right.resource.version,
                "resource": right.resource.plural,
                "subresource": right.subresource,
                "name": right.name,
            },
        },
    }
    status = _decoded(await server.create(OWN_ACCESS_REVIEWS, asked), _AccessReview).status
    return status.allowed and not status.denied


async def our_name(server: ReviewServer) -> str:
    """Return who we are to the API server.

    Raises:
        ClusterError: it could not be asked, or is older than this question (1.28).
    """
    asked = {"apiVersion": OWN_REVIEWS.api_version, "kind": OWN_REVIEWS.kind}
    answer = _decoded(await server.create(OWN_REVIEWS, asked), _OwnReview)
    return answer.status.user_info.username


def _decoded(body: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.DecodeError as error:
        raise ClusterError("the API server's answer to a review cannot be read") from error
