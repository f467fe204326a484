"""The commands for wishes: what is bad input before anybody is asked, and what is said after."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from gpu_pruner.cli.commands import command_line
from gpu_pruner.cli.wishes import sentence
from gpu_pruner.serve.wishes import WishAnswer

REF = "deployment/team-a/server"
WHY = ("--reason", "a demonstration")
SOON = "it is paused in one of the next cycles, if nothing stands against it"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("keep", REF, "--for", "4h"), "--reason"),
        (("keep", REF, *WHY), "either --for or --withdraw"),
        (("keep", REF, *WHY, "--for", "4h", "--withdraw"), "either --for or --withdraw"),
        (("keep", REF, *WHY, "--for", "four"), "not a length of time"),
        (("keep", REF, *WHY, "--for", "4"), "has no unit"),
        (("keep", REF, *WHY, "--for", "0"), "has no unit"),
        (("keep", REF, *WHY, "--for", "0h"), "is over at once"),
        (("exempt", REF, *WHY, "--for", "0d"), "is over at once"),
        (("exempt", REF, *WHY, "--until", "now"), "'now' is not a time"),
        (("exempt", REF, *WHY, "--until", "2027-01-01T00:00:00+99:00"), "is not a time"),
        (("keep", REF, "--for", "4h", "--reason", "  "), "say why"),
        (("keep", REF, "--for", "4h", "--reason", "x" * 1025), "say why"),
        (("keep", REF, "--for", "4h", "--reason", "\udcff\udcfe"), "not UTF-8"),
        (("exempt", REF, "--reason", "\x1b[31m"), "'--reason': has a control character"),
        (("release", REF, "--reason", "\udcff"), "--reason"),
        (("pause", REF, "--reason", "\udcff"), "'--reason': has a control character"),
        (("pause", REF, "--reason", "x" * 1025), "say why"),
        (("extend", REF, *WHY), "either --for or --withdraw"),
        (("resume", REF, "--wrong", "  "), "say why"),
        (("resume", REF, "--wrong", "x" * 1025), "say why"),
        (("resume", REF, "--wrong", "\x1b[31m"), "has a control character"),
        (("resume", REF, "--wrong"), "requires an argument"),
        (("exempt", REF, *WHY, "--until", "2026-01-31T18:00:00"), "names no time zone"),
        (("exempt", REF, *WHY, "--until", "2026-01-31T18:00:00Z", "--for", "4h"), "one of"),
        (("exempt", REF, *WHY, "--for", "4h", "--withdraw"), "one of"),
        (("release", REF), "--reason"),
        (("release", REF, *WHY, "--for", "4h"), "No such option"),
    ],
)
def test_bad_input_is_told_before_anybody_is_asked(arguments: tuple[str, ...], says: str) -> None:
    result = CliRunner().invoke(command_line, arguments)
    assert result.exit_code == 2
    assert says in result.output


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (
            WishAnswer(REF, "ada", keep_until="T1", honoured_until="T1"),
            f"{REF}: kept by ada until T1",
        ),
        (
            WishAnswer(REF, "ada", keep_until="T2", honoured_until="T1"),
            f"{REF}: kept by ada until T2, which is honoured until T1",
        ),
        (WishAnswer(REF, "ada"), f"{REF}: exempted by ada for good"),
        (WishAnswer(REF, "ada", exempt_until="T1"), f"{REF}: exempted by ada until T1"),
        (WishAnswer(REF, "ada", withdrawn="keep"), f"{REF}: ada took the keep back"),
        (
            WishAnswer(REF, "ada", release_at="T1", honoured_until="T2"),
            f"{REF}: released by ada; {SOON} until T2",
        ),
    ],
)
def test_what_was_written_is_said_in_a_sentence(answer: WishAnswer, said: str) -> None:
    assert sentence(answer) == said
