from __future__ import annotations

import io
from dataclasses import replace

import pytest
from msgspec import structs
from rich.console import Console

from gpu_pruner.cli.demo_picture import picture
from gpu_pruner.cli.demo_summary import playbill, summarise, verdict
from gpu_pruner.model.units import rfc3339
from gpu_pruner.sim.judge import Judgement, Scene
from gpu_pruner.sim.stage import Moment, Told, ToldWorkload
from gpu_pruner.sim.story import Ending
from gpu_pruner.sim.story_file import first_story

NOW = 1_000_000_000.0
PARTS = first_story().workloads
SCENE = Scene(size=1, annotations={}, pods=frozenset({"a"}), ready=1, phase="Watching")


def told(part, reason, *, verdict="idle", message="it idles", **more):
    return ToldWorkload(
        ref=part.ref, verdict=verdict, reason=reason, message=message, state="", **more
    )


def moment(parts=PARTS, *, over=True, say=None, scene=SCENE, **more):
    say = say or {part.ref: told(part, part.reasons[0].value) for part in parts}
    judgements = tuple(
        Judgement(part=part, over=over, why="it idled" if over else "") for part in parts
    )
    return Moment(
        minute=60.0,
        now=NOW,
        judgements=more.pop("judgements", judgements),
        scenes={part.ref: scene for part in parts},
        told=say,
        cycle=Told(workloads=tuple(say.values()), cycle={"number": 3, "at": rfc3339(NOW)}),
        happened=tuple(f"minute {one:3}  something happens" for one in range(30)),
        **more,
    )


def shown(now, *, width, height):
    console = Console(width=width, height=height, file=io.StringIO(), force_terminal=False)
    with console.capture() as caught:
        console.print(picture(now, console, "The story ended as told."))
    return caught.get().splitlines()


@pytest.mark.parametrize("height", [24, 30, 40, 50, 100])
@pytest.mark.parametrize("width", [80, 100, 120, 200])
def test_a_picture_fits_a_terminal_and_names_every_workload(width, height):
    lines = shown(moment(), width=width, height=height)
    assert len(lines) < height
    for part in PARTS:
        assert any(one.lstrip().startswith(f"{part.ref} ") for one in lines)


def test_a_narrow_picture_tells_what_each_workload_is_in_whole():
    lines = shown(moment(), width=56, height=60)
    for part in PARTS:
        at = next(place for place, one in enumerate(lines) if one.startswith(f"{part.ref} "))
        assert lines[at + 1].strip() == part.told
        assert part.ending.value in lines[at]


def test_a_line_has_the_evidence_and_not_the_name_of_the_device():
    uuid = "GPU-354d31e3-3794-470e-ae6e-e62791b1605e/7"
    part = next(one for one in PARTS if one.ending is Ending.KEPT)
    message = f"{uuid} of pod finetune-x: encoder busy until noon"
    now = moment((part,), say={part.ref: told(part, "GpuActive", message=message)})
    assert any("GpuActive: encoder busy" in one for one in shown(now, width=120, height=10))
    assert any(uuid in one for one in shown(now, width=120, height=40))


def test_of_what_is_paused_the_evidence_is_shown_and_not_only_when():
    part = next(one for one in PARTS if one.ending is Ending.PAUSED)
    now = moment((part,), say={part.ref: told(part, "Paused", message="Paused at noon")})
    assert any("Paused: it idled" in one for one in shown(now, width=120, height=40))


def test_what_was_warned_shows_the_minutes_that_are_left():
    part = PARTS[0]
    say = {part.ref: told(part, "Warned", pause_at=rfc3339(NOW + 7 * 60))}
    now = moment((part,), over=False, say=say, scene=replace(SCENE, phase="Warned"))
    assert any("Warned, 7 min" in one for one in shown(now, width=120, height=40))
    assert any("Warned, 7 min" in one for one in shown(now, width=56, height=40))


def test_a_wrong_outcome_is_shown_at_once():
    part = PARTS[0]
    wrong = Judgement(part=part, over=False, faults=("was paused without a warning",))
    now = moment((part,), judgements=(wrong,))
    assert any("WRONG" in one for one in shown(now, width=120, height=40))
    assert verdict(summarise(now)) == (
        f"The story did NOT end as told: {part.ref} was paused without a warning"
    )


def test_markup_in_a_name_of_ones_own_is_shown_as_it_is():
    part = structs.replace(PARTS[0], told="a [bold]bracket[/] and [nothing")
    lines = shown(moment((part,)), width=56, height=40)
    assert any("a [bold]bracket[/] and [nothing" in one for one in lines)


def test_the_playbill_is_a_line_for_each_workload_with_its_own_reason():
    summary = summarise(moment())
    lines = list(playbill(summary))
    assert summary.ok
    assert len(lines) == len(PARTS)
    for line, part in zip(lines, PARTS, strict=True):
        assert line.startswith(part.ending.value)
        assert f"{part.ref} ({part.told}): it idled" in line


def test_what_was_not_paused_is_told_with_the_reason_of_now():
    part = next(one for one in PARTS if one.ending is Ending.KEPT)
    say = {part.ref: told(part, part.reasons[0].value, message="one GPU works")}
    judged = Judgement(part=part, over=True)
    (line,) = playbill(summarise(moment((part,), say=say, judgements=(judged,))))
    assert line.endswith(f": {part.reasons[0].value}: one GPU works")


@pytest.mark.parametrize(("phase", "state"), [("Paused", "paused"), ("Watching", "kept")])
def test_an_open_part_is_told_as_it_is(phase, state):
    part = structs.replace(PARTS[0], ending=Ending.OPEN, reasons=())
    now = moment((part,), say={part.ref: told(part, "Idle")}, scene=replace(SCENE, phase=phase))
    summary = summarise(now)
    assert (summary.ok, summary.workloads[0].state, summary.workloads[0].expected) == (
        True,
        state,
        "open",
    )


def test_a_reason_that_is_not_the_storys_is_a_fault():
    part = PARTS[0]
    summary = summarise(moment((part,), say={part.ref: told(part, "GpuActive")}))
    assert summary.faults == (f"{part.ref} is told to be GpuActive",)
    assert not summarise(moment((part,), say={"x": told(part, "Idle")})).ok
