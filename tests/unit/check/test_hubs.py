"""What a check says of a JupyterHub: each trouble by itself, with its fix."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpu_pruner.check.finding import Area, Level
from gpu_pruner.check.hubs import HubLook, findings
from gpu_pruner.model.rules import Mode

ALL = frozenset({"list:users", "read:servers", "delete:servers", "start:servers", "read:hub"})
FINE = HubLook(
    namespace="jhub",
    place="JupyterHub http://hub.jhub:8081",
    token_file=Path("/secrets/hub"),
    version="5.2.1",
    scopes=ALL,
    active=3,
)


def told(look: HubLook, mode: Mode = Mode.SCALE_DOWN) -> tuple[Level, str]:
    """Return the worst finding, as it is printed."""
    found = list(findings(look, mode=mode))
    assert {one.area for one in found} == {Area.HUBS}
    worst = max(found, key=lambda one: list(Level).index(one.level))
    assert (worst.fix == "") is (worst.level is Level.OK)
    return worst.level, f"{worst.sentence}\n{worst.fix}"


def test_a_hub_that_is_fine_is_told_with_its_version_and_what_it_shows() -> None:
    version, token = findings(FINE, mode=Mode.SCALE_DOWN)
    assert {version.level, token.level} == {Level.OK}
    assert "it is JupyterHub 5.2.1" in version.sentence
    assert token.sentence.endswith("accepts our token and shows 3 active servers")


def test_a_hub_that_is_away_is_told_with_the_address_that_it_should_have() -> None:
    level, text = told(replace(FINE, version="", unreachable="JupyterHub x: it is away"))
    assert level is Level.FAIL
    assert "it is away, so no server in namespace jhub is ever paused" in text
    assert "  url: http://hub.jhub:8081" in text


def test_a_refused_token_is_told_with_the_role_to_add_and_its_file() -> None:
    level, text = told(replace(FINE, scopes=None, active=None, refused="it refuses the token"))
    assert level is Level.FAIL
    assert '"scopes": ["list:users", "read:servers", "delete:servers", "start:servers"]' in text
    assert "/secrets/hub" in text


def test_an_error_that_names_its_own_fix_keeps_it() -> None:
    why = "the token file /secrets/hub is empty; check jupyter_hubs.token_file"
    _, text = told(replace(FINE, scopes=None, active=None, refused=why))
    assert text.endswith("\ncheck jupyter_hubs.token_file")


@pytest.mark.parametrize("scope", ["list:users", "read:servers"])
@pytest.mark.parametrize("mode", list(Mode))
def test_without_a_scope_to_see_servers_nothing_works(scope: str, mode: Mode) -> None:
    level, text = told(replace(FINE, scopes=ALL - {scope}, active=0), mode)
    assert level is Level.FAIL
    assert f"the token lacks {scope}, so no server in namespace jhub" in text


@pytest.mark.parametrize(
    ("scope", "acts"), [("delete:servers", "stopped"), ("start:servers", "started again")]
)
@pytest.mark.parametrize(("mode", "level"), [(Mode.DRY_RUN, "WARN"), (Mode.SCALE_DOWN, "FAIL")])
def test_a_scope_that_only_a_pause_needs_is_a_warning_in_a_dry_run(
    scope: str, acts: str, mode: Mode, level: str
) -> None:
    found, text = told(replace(FINE, scopes=ALL - {scope}), mode)
    assert found == level
    assert f"the token lacks {scope}, so none of its servers can be {acts}" in text


def test_scopes_for_some_users_are_enough_and_the_limit_is_told() -> None:
    narrow = frozenset(f"{one}!group=trial" for one in ALL)
    level, text = told(replace(FINE, scopes=narrow))
    assert level is Level.OK
    [_, token] = findings(replace(FINE, scopes=narrow), mode=Mode.SCALE_DOWN)
    assert "out of its sight: delete:servers!group=trial" in token.sentence
    assert "read:hub" not in text


def test_a_hub_without_scopes_is_too_old() -> None:
    level, text = told(replace(FINE, version="1.5.1", scopes=None, active=None))
    assert level is Level.FAIL
    assert "tokens have scopes from 2.0 on" in text


def test_scopes_that_are_not_told_are_a_warning() -> None:
    level, text = told(replace(FINE, scopes=None))
    assert level is Level.WARN
    assert "does not tell which scopes our token has" in text


def test_a_list_of_users_that_fails_is_a_failure_whatever_the_scopes_say() -> None:
    level, text = told(replace(FINE, active=None, unlisted="its list of users takes too long"))
    assert level is Level.FAIL
    assert "takes too long, so no server" in text
