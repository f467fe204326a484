"""Who is speaking, and what that person may do.

Imitates authentication and authorization of the API server as far as clients can tell: tokens of
users and of ServiceAccounts, audiences, 401 for an unknown token, 403 for whoever has no rights.
Rights are all or nothing: the users that the cluster was made with may do everything,
ServiceAccounts and the anonymous next to nothing. Called by `serving` and `reviews`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gpu_pruner.sim.identity import uuid_of

API_AUDIENCE = "https://kubernetes.default.svc"
"""What a token is for if nobody says what it is for."""
MASTERS = "system:masters"
_AUTHENTICATED = "system:authenticated"


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Somebody who speaks to the API server, human or program."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    audiences: tuple[str, ...] = (API_AUDIENCE,)
    """Who the token that was shown is meant for."""

    @property
    def may_do_everything(self) -> bool:
        """Tell whether this is an administrator; everybody else may do next to nothing."""
        return MASTERS in self.groups


ANONYMOUS = Person(name="system:anonymous", groups=("system:unauthenticated",))


class Access:
    """The tokens that were given out."""

    def __init__(self, seed: int, users: Iterable[str], *, anonymous: str = "") -> None:
        """Give every user a token.

        Args:
            seed: tokens depend on it and on nothing else.
            users: who may do everything.
            anonymous: which of them a request without a token comes from; empty: nobody.
        """
        self._seed = seed
        self._tokens = {user: uuid_of(seed, "token", user) for user in users}
        self._people = {
            token: Person(name=user, groups=(MASTERS, _AUTHENTICATED))
            for user, token in self._tokens.items()
        }
        self._anonymous = self._people[self._tokens[anonymous]] if anonymous else ANONYMOUS

    def token(self, user: str) -> str:
        """Return the token of a user that the cluster was made with."""
        return self._tokens[user]

    def issue(self, namespace: str, name: str, *, uid: str, audiences: Iterable[str]) -> str:
        """Return a new token of a ServiceAccount.

        Args:
            namespace: of the account.
            name: of the account.
            uid: of the account.
            audiences: who the token is for; nobody named: the API server.
        """
        token = uuid_of(self._seed, "account", uid, len(self._people))
        everybody = "system:serviceaccounts"
        self._people[token] = Person(
            name=f"system:serviceaccount:{namespace}:{name}",
            uid=uid,
            groups=(everybody, f"{everybody}:{namespace}", _AUTHENTICATED),
            audiences=tuple(audiences) or (API_AUDIENCE,),
        )
        return token

    def owner_of(self, token: str) -> Person | None:
        """Return whose token it is, whoever it is for."""
        return self._people.get(token)

    def speaker(self, authorization: str) -> Person | None:
        """Return who sends a request with this ``Authorization`` header.

        None for a token that is unknown, or that is meant for somebody else than the API server.
        """
        if not authorization:
            return self._anonymous
        person = self.owner_of(authorization.removeprefix("Bearer "))
        return person if person is not None and API_AUDIENCE in person.audiences else None


def user_info(person: Person) -> Mapping[str, object]:
    """Return a person as reviews tell of one."""
    told = {"username": person.name, "uid": person.uid, "groups": list(person.groups)}
    return {key: value for key, value in told.items() if value}
