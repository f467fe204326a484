"""Reviews: questions to the API server that are asked by a POST and stored nowhere.

Imitates TokenReview (who is this, and is the token meant for me), SelfSubjectReview (who am I),
SubjectAccessReview and SelfSubjectAccessReview (may somebody do that), and TokenRequest (a token
for a ServiceAccount).
Called by `api`.
"""

from __future__ import annotations

from gpu_pruner.model.units import HOUR, Timestamp, rfc3339
from gpu_pruner.sim.access import API_AUDIENCE, Access, Person, user_info
from gpu_pruner.sim.failures import bad_request, invalid
from gpu_pruner.sim.resources import OWN_ACCESS_REVIEWS, OWN_REVIEWS, TOKEN_REVIEWS, Resource
from gpu_pruner.sim.store import Item
from gpu_pruner.sim.tree import JsonObject, child, mapping, number, strings, text


def reviewed(resource: Resource, body: JsonObject, *, access: Access, asker: Person) -> JsonObject:
    """Return the review with its answer.

    Raises:
        ApiFailure: 400 or 422, there is no question in it.
    """
    head: JsonObject = {"kind": resource.kind, "apiVersion": resource.api_version}
    if resource is OWN_REVIEWS:  # the only one without a spec: who asks is the question
        return head | {"metadata": {}, "status": {"userInfo": user_info(asker)}}
    if resource is TOKEN_REVIEWS:
        status = _token_status(mapping(body, "spec"), access)
    else:
        status = {"allowed": _may(resource, mapping(body, "spec"), asker)}
    return head | {"metadata": {}, "spec": mapping(body, "spec"), "status": status}


def _token_status(spec: JsonObject, access: Access) -> JsonObject:
    token = text(spec, "token")
    if not token:
        raise bad_request("a TokenReview needs a token")
    person = access.owner_of(token)
    wanted = strings(spec, "audiences") or [API_AUDIENCE]
    shared = [one for one in wanted if person and one in person.audiences]
    if person is None or not shared:
        return {"user": {}, "error": "the token is unknown, or meant for somebody else"}
    return {"authenticated": True, "user": user_info(person), "audiences": shared}


def _may(resource: Resource, spec: JsonObject, asker: Person) -> bool:
    paths = ("resourceAttributes", "nonResourceAttributes")
    if sum(child(spec, one) is not None for one in paths) != 1:
        field, why = "spec.resourceAttributes", "it or nonResourceAttributes is needed"
        raise invalid(resource, "", field=field, why=why)
    if resource is OWN_ACCESS_REVIEWS:
        return asker.may_do_everything
    if not text(spec, "user") and not strings(spec, "groups"):
        raise invalid(resource, "", field="spec.user", why="a user or a group is needed")
    person = Person(name=text(spec, "user"), groups=tuple(strings(spec, "groups")))
    return person.may_do_everything


def token_for(account: Item, body: JsonObject, *, access: Access, now: Timestamp) -> JsonObject:
    """Return a TokenRequest with a new token of a ServiceAccount."""
    audiences = strings(body, "spec", "audiences") or [API_AUDIENCE]
    seconds = number(body, "spec", "expirationSeconds", default=int(HOUR))
    token = access.issue(account.namespace, account.name, uid=account.uid, audiences=audiences)
    return {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {"name": account.name, "namespace": account.namespace},
        "spec": {"audiences": audiences, "expirationSeconds": seconds},
        "status": {"token": token, "expirationTimestamp": rfc3339(now + seconds)},
    }
