"""What is right and wrong with the JupyterHubs of the settings. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from gpu_pruner.check.cluster import split
from gpu_pruner.check.finding import Area, Finding, Level, counted, listed
from gpu_pruner.jupyterhub.answers import SEEING, STOPPING
from gpu_pruner.model.rules import Mode

_OLDEST = 2
"""Major version from which on tokens have scopes, and a list of users comes in pages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HubLook:
    """What one Hub said."""

    namespace: str
    place: str
    """How to name it in sentences, without credentials."""
    token_file: Path
    version: str = ""
    unreachable: str = ""
    """Why it tells no version."""
    scopes: frozenset[str] | None = None
    """Of our token; None where the Hub does not tell, or refuses it."""
    refused: str = ""
    """Why the token is not accepted."""
    active: int | None = None
    """Servers that it shows to us."""
    unlisted: str = ""
    """Why it lists none."""


def findings(look: HubLook, *, mode: Mode) -> Iterator[Finding]:
    """Say whether a Hub answers, which one it is, and whether our token is enough.

    Args:
        look: what it said.
        mode: what the controller is to do.
    """
    unseen = f"so no server in namespace {look.namespace} is ever paused"
    if look.unreachable:
        sentence, _ = split(look.unreachable)
        yield _finding(Level.FAIL, f"{sentence}, {unseen}", _reach(look.namespace))
        return
    if _is_too_old(look.version):
        told = f"{look.place} is version {look.version}; tokens have scopes from {_OLDEST}.0 on"
        yield _finding(Level.FAIL, f"{told}, {unseen}", "upgrade JupyterHub")
        return
    yield _finding(Level.OK, f"{look.place} answers; it is JupyterHub {look.version}")
    if look.refused:
        sentence, fix = split(look.refused)
        # Of the file itself its own words are better than ours.
        fix = fix if "token_file" in fix else _grant(look.token_file)
        yield _finding(Level.FAIL, f"{sentence}, {unseen}", fix)
        return
    yield from _rights(look, mode=mode, unseen=unseen)


def _is_too_old(version: str) -> bool:
    major = version.partition(".")[0]
    return major.isdecimal() and int(major) < _OLDEST


def _rights(look: HubLook, *, mode: Mode, unseen: str) -> Iterator[Finding]:
    blind = tuple(one for one in SEEING if not _has(look.scopes, one))
    idle = tuple(one for one in STOPPING if not _has(look.scopes, one))
    fix = _grant(look.token_file)
    if look.scopes is None:
        told = f"{look.place} does not tell which scopes our token has"
        yield _finding(Level.WARN, told, fix)
    elif blind:
        told = f"{look.place}: the token lacks {' and '.join(blind)}"
        yield _finding(Level.FAIL, f"{told}, {unseen}", fix)
    elif look.unlisted:
        sentence, _ = split(look.unlisted)
        yield _finding(Level.FAIL, f"{sentence}, {unseen}", fix)
    if look.scopes is not None and idle:
        level = Level.WARN if mode is Mode.DRY_RUN else Level.FAIL
        later = " (needed for scale-down only)" if mode is Mode.DRY_RUN else ""
        told = f"{look.place}: the token lacks {' and '.join(idle)}, so none of its servers can "
        yield _finding(level, f"{told}be {_acts(idle)}{later}", fix)
    if look.active is not None and not blind and not idle:
        told = f"{look.place} accepts our token and shows {counted(look.active, 'active server')}"
        yield _finding(Level.OK, told + _limits(look.scopes or ()))


def _has(scopes: Collection[str] | None, wanted: str) -> bool:
    """Whether a scope was granted, be it for some users only."""
    return scopes is not None and any(one.partition("!")[0] == wanted for one in scopes)


def _acts(missing: Collection[str]) -> str:
    words = {"delete:servers": "stopped", "start:servers": "started again"}
    return " and ".join(words[one] for one in missing)


def _limits(scopes: Collection[str]) -> str:
    """Name the limits of our scopes; what is granted for everybody has none."""
    limited = sorted(
        one
        for one in scopes
        if one.partition("!")[0] in {*SEEING, *STOPPING}
        and "!" in one
        and one.partition("!")[0] not in scopes
    )
    return f"; other servers are out of its sight: {listed(limited)}" if limited else ""


def _reach(namespace: str) -> str:
    return (
        "the URL is that of the Hub itself, not of its proxy, with its base_url behind it:\n"
        f"kubectl -n {namespace} get service hub\n"
        "jupyter_hubs:\n"
        f"- namespace: {namespace}\n"
        f"  url: http://hub.{namespace}:8081\n"
        "and a NetworkPolicy before the Hub must let us in"
    )


def _grant(token_file: Path) -> str:
    scopes = ", ".join(f'"{one}"' for one in (*SEEING, *STOPPING))
    return (
        "in the Hub's configuration (hub.services and hub.loadRoles of its Helm chart):\n"
        'c.JupyterHub.services = [{"name": "gpu-pruner", "api_token": "…"}]\n'
        'c.JupyterHub.load_roles = [{"name": "gpu-pruner", "services": ["gpu-pruner"],\n'
        f'    "scopes": [{scopes}]}}]\n'
        f"and the same token in {token_file}"
    )


def _finding(level: Level, sentence: str, fix: str = "") -> Finding:
    return Finding(level=level, area=Area.HUBS, sentence=sentence, fix=fix)
