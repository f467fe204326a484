"""Findings of a check that need no server: fields, coverage, devices, clocks, and their order."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec import structs

from gpu_pruner.check import cluster, coverage, devices, fields, telemetry
from gpu_pruner.check.cluster import ClusterLook, Guard
from gpu_pruner.check.finding import Area, Finding, Level, checkup, counted, listed
from gpu_pruner.check.telemetry import TelemetryLook
from gpu_pruner.decide.device import Yardstick
from gpu_pruner.decide.plan import plan
from gpu_pruner.kube.resources import DEPLOYMENTS, GPUWORKLOADS, NOTEBOOKS
from gpu_pruner.model.cluster import ClusterView
from gpu_pruner.model.rules import Mode
from gpu_pruner.model.signals import (
    Column,
    DeviceEvidence,
    DeviceId,
    Period,
    PodName,
    SeriesLabels,
    Signal,
    SignalEvidence,
    Subject,
)
from gpu_pruner.model.snapshot import ALL_HELD, Breaker, Snapshot, Workload
from gpu_pruner.model.survey import JobSurvey, Survey
from gpu_pruner.model.telemetry import Screen
from gpu_pruner.model.verdict import Reason
from gpu_pruner.model.workload import GpuPod, NodeRecord, PodPhase, PodRecord, RootRef
from gpu_pruner.settings.schema import Settings

RULES = Settings().rules()
NOW = 1_767_268_800.0
WINDOW = Period.ending(NOW, length=2100, step_seconds=60)
YARDSTICK = Yardstick(rules=RULES, at=NOW, scrape_interval_seconds=30.0)
ENGINE = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
UTIL = "DCGM_FI_DEV_GPU_UTIL"
ENERGY = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"
EVERYTHING = (
    ENGINE, UTIL, ENERGY, "DCGM_FI_PROF_DRAM_ACTIVE", "DCGM_FI_DEV_ENC_UTIL",
    "DCGM_FI_DEV_DEC_UTIL", "DCGM_FI_DEV_MEM_COPY_UTIL", "DCGM_FI_PROF_PCIE_TX_BYTES",
    "DCGM_FI_DEV_XID_ERRORS",
)  # fmt: skip
H100 = "NVIDIA H100 80GB HBM3"


def of_model(*metrics: str, devices: int = 8, model: str = H100) -> Survey:
    return Survey(server="it", models={model: dict.fromkeys(metrics, devices)})


def levels(survey: Survey) -> dict[Level, str]:
    found = fields.findings(survey, RULES, proven=frozenset())
    told: dict[Level, str] = {}
    for one in found:
        told[one.level] = f"{told.get(one.level, '')}{one.sentence}\n{one.fix}\n"
    return told


def test_a_model_with_every_field_is_one_good_line() -> None:
    assert levels(of_model(*EVERYTHING)).keys() == {Level.OK}


@pytest.mark.parametrize("metric", EVERYTHING)
def test_each_field_that_is_missing_is_told_with_its_line(metric: str) -> None:
    told = levels(of_model(*(one for one in EVERYTHING if one != metric)))
    assert metric in "".join(told.get(one, "") for one in (Level.WARN, Level.FAIL))


def test_without_energy_power_and_temperature_nothing_shows_that_readings_live() -> None:
    told = levels(of_model(*(one for one in EVERYTHING if one != ENERGY)))
    assert "neither energy, power nor temperature" in told[Level.FAIL]
    assert Level.FAIL not in levels(of_model(*EVERYTHING[:2], "DCGM_FI_DEV_POWER_USAGE"))


def test_devices_without_a_field_that_others_of_the_model_have_are_counted() -> None:
    partly = Survey(server="it", models={H100: {**dict.fromkeys(EVERYTHING, 8), ENGINE: 8}})
    some = replace(partly, models={H100: {**partly.models[H100], ENGINE: 6, UTIL: 6}})
    assert "2 of them without a field that could prove idleness" in levels(some)[Level.WARN]
    assert Level.WARN not in levels(partly)


def evidence(
    uuid: str, *, node: str = "node-a", seen: int = 35, age: float = 0.0, owner: str = ""
) -> DeviceEvidence:
    engine = SignalEvidence(
        signal=Signal.ENGINE,
        metric=ENGINE,
        seen_steps=seen,
        active_steps=0,
        last_active_at=None,
        invalid_steps=0,
        changes=0,
        newest_at=NOW - age,
    )
    name = PodName("team-a", owner) if owner else None
    return DeviceEvidence(
        device=DeviceId(uuid),
        period=WINDOW,
        signals=(engine,),
        owners=(SeriesLabels(exported=name),) if name else (),
        node=node,
        model=H100,
    )


def gpu_node(name: str, gpus: int = 2, **more: object) -> NodeRecord:
    return NodeRecord(name=name, ready=True, gpus={"nvidia.com/gpu": gpus}, **more)


def covered(
    *found: DeviceEvidence, nodes: tuple[NodeRecord, ...], grows: bool = False
) -> list[Finding]:
    view = ClusterView(nodes={one.name: one for one in nodes})
    return list(coverage.findings(found, view, YARDSTICK, grows=grows))


def test_a_node_is_the_same_with_and_without_its_domain() -> None:
    [fine] = covered(
        evidence("GPU-1", node="NODE-A.example"), evidence("GPU-2"), nodes=(gpu_node("node-a"),)
    )
    assert fine.level is Level.OK


def test_a_node_that_is_not_ready_is_not_called_silent() -> None:
    away = replace(gpu_node("node-b"), ready=False)
    found = covered(evidence("GPU-1"), evidence("GPU-2"), nodes=(gpu_node("node-a"), away))
    assert [one.level for one in found] == [Level.OK]


@pytest.mark.parametrize(("age", "level"), [(90.0, Level.OK), (91.0, Level.FAIL)])
def test_a_node_is_silent_from_the_age_on_at_which_a_cycle_calls_it_stale(
    age: float, level: Level
) -> None:
    found = covered(evidence("GPU-1", age=age), nodes=(gpu_node("node-a", gpus=1),))
    assert found[0].level is level


@pytest.mark.parametrize(("seen", "level"), [(33, Level.OK), (32, Level.WARN)])
def test_coverage_is_thin_below_what_a_cycle_needs(seen: int, level: Level) -> None:
    found = covered(evidence("GPU-1", seen=seen), nodes=(gpu_node("node-a", gpus=1),))
    assert [one.level for one in found] == [level]


def test_a_device_that_is_judged_by_twice_the_window_makes_no_other_one_thin() -> None:
    longer = structs.replace(
        evidence("GPU-2", seen=70), period=Period.ending(NOW, length=4200, step_seconds=60)
    )
    [found] = covered(evidence("GPU-1"), longer, nodes=(gpu_node("node-a"),))
    assert found.level is Level.OK


def test_missing_devices_are_told_but_not_where_devices_are_shared_or_sliced() -> None:
    short = covered(evidence("GPU-1"), nodes=(gpu_node("node-a"),))
    shared = covered(evidence("GPU-1"), nodes=(gpu_node("node-a", sharing="time-slicing"),))
    assert "node-a (1 of 2)" in short[0].sentence
    assert [one.level for one in shared] == [Level.OK]


def test_before_the_first_step_is_over_nobody_is_called_silent() -> None:
    [found] = covered(nodes=(gpu_node("node-a", gpus=1),), grows=True)
    assert found.level is Level.OK
    assert "shows after it" in found.sentence


def test_a_memory_that_only_begins_to_fill_is_not_called_thin() -> None:
    found = covered(evidence("GPU-1", seen=1), nodes=(gpu_node("node-a", gpus=1),), grows=True)
    assert [one.level for one in found] == [Level.OK]


def a_pod(name: str = "train-0", *, since: float = 3600.0) -> PodRecord:
    return PodRecord(
        uid=name,
        namespace="team-a",
        name=name,
        phase=PodPhase.RUNNING,
        created_at=NOW - since - 30,
        ready_since=NOW - since,
        node="node-a",
        requests={"nvidia.com/gpu": 1},
    )


def told_of(*pods: GpuPod, loose: tuple[DeviceEvidence, ...] = ()) -> list[Finding]:
    root = RootRef("StatefulSet", "team-a", "train", "apps", "uid-1")
    snapshot = Snapshot(
        now=NOW,
        period=WINDOW,
        scrape_interval_seconds=30.0,
        workloads=(Workload(root=root, pods=pods),),
        allocated_gpus=len(pods),
        loose=loose,
    )
    return list(devices.findings(snapshot, plan(snapshot, RULES)))


def test_a_pod_without_series_is_the_mappings_fault_where_its_node_has_free_devices() -> None:
    lost = GpuPod(record=a_pod(), gap=Reason.NO_SERIES)
    unmapped = told_of(lost, loose=(evidence("GPU-1"),))[0]
    silent = told_of(lost)[0]
    assert {unmapped.level, silent.level} == {Level.FAIL}
    assert "KUBERNETES_GPU_ID_TYPE" in unmapped.fix
    assert "see coverage" in silent.fix


def test_a_pod_that_has_just_begun_is_not_missed_yet() -> None:
    young = GpuPod(record=a_pod(since=200.0), gap=Reason.NO_SERIES)
    assert Level.FAIL not in {one.level for one in told_of(young)}


@pytest.mark.parametrize(
    "gap",
    [Reason.SHARED_DEVICE, Reason.OWNER_CHANGED, Reason.WRONG_NODE, Reason.DEVICE_MISMATCH],
)
def test_every_other_gap_is_told_with_the_pod_and_a_fix(gap: Reason) -> None:
    [found, *_] = told_of(GpuPod(record=a_pod(), devices=(evidence("GPU-1"),), gap=gap))
    assert found.level is Level.WARN
    assert "team-a/train-0" in found.sentence
    assert found.fix


def test_a_device_that_names_a_stranger_is_told_apart_from_a_free_one() -> None:
    held = GpuPod(record=a_pod(), devices=(evidence("GPU-1"),))
    found = told_of(held, loose=(evidence("GPU-2", owner="claims-0"), evidence("GPU-3")))
    told = {one.level: one.sentence for one in found}
    assert "GPU-2 (team-a/claims-0)" in told[Level.WARN]
    assert "1 device held by no pod" in [one.sentence for one in found]


@pytest.mark.parametrize(
    ("skew", "level"),
    [(0.0, Level.OK), (-11.0, Level.WARN), (30.0, Level.WARN), (31.0, Level.FAIL)],
)
def test_clocks_are_told_before_they_stop_everything(skew: float, level: Level) -> None:
    [found] = cluster.clocks(telemetry=skew, cluster=None, source="Prometheus")
    assert found.level is level
    assert (found.fix != "") is (level is not Level.OK)


def test_a_hold_is_somebodys_will_and_every_other_breaker_a_failure() -> None:
    held, failed = cluster.breakers(
        [Breaker(name=ALL_HELD, message="x"), Breaker(name="WindowTooShort", message="so; do it")]
    )
    assert (held.level, failed.level) == (Level.WARN, Level.FAIL)
    assert failed.fix == "do it"


def test_a_cause_that_is_told_elsewhere_is_not_told_twice() -> None:
    [failed] = cluster.breakers(
        [Breaker(name="ScreenFailed", message="it is slow; check its load")]
    )
    assert failed.level is Level.FAIL
    assert "slow" not in failed.sentence
    assert failed.fix == "see telemetry"


def test_guard_rails_that_nobody_may_see_are_not_said_to_be_there() -> None:
    def told(guard: Guard) -> Finding:
        look = ClusterLook(address="https://api", guards={"gpu-pruner-books": guard})
        [found] = cluster.findings(look, mode=Mode.DRY_RUN)
        return found

    assert "was not looked at" in told(Guard.UNSEEN).sentence
    assert told(Guard.ABSENT).level is Level.WARN
    assert "are installed and bound" in told(Guard.THERE).sentence


def test_kinds_of_others_are_named_and_our_own_is_told_apart() -> None:
    look = ClusterLook(
        address="https://api", served=frozenset({DEPLOYMENTS, NOTEBOOKS, GPUWORKLOADS})
    )
    ours, others = cluster.findings(look, mode=Mode.SCALE_DOWN)
    assert (ours.level, others.level) == (Level.OK, Level.OK)
    assert others.sentence.endswith("installed: Notebook")


def screen_with(*values: float) -> Screen:
    steps = tuple(enumerate(values))
    series = [(Subject(DeviceId("GPU-1"), SeriesLabels()), steps)]
    return Screen(
        period=WINDOW,
        columns=(Column(Signal.ENGINE, ENGINE, series),),
        scrape_interval_seconds=30.0,
    )


@pytest.mark.parametrize(
    ("peak", "level"),
    [(0.0, Level.OK), (0.0009, Level.OK), (0.001, Level.WARN), (0.0099, Level.WARN),
     (0.01, Level.OK), (float("nan"), Level.OK)],
)  # fmt: skip
def test_the_threshold_is_advised_on_by_what_it_overlooked(peak: float, level: Level) -> None:
    look = TelemetryLook(screen=screen_with(0.0, peak))
    found = telemetry.findings(look, RULES, honor_labels=None, direct=False)
    [threshold] = [one for one in found if one.area is Area.THRESHOLD]
    assert threshold.level is level


@pytest.mark.parametrize(
    ("job", "honor", "level"),
    [
        (JobSurvey(name="a", series=2, exported=1), None, Level.OK),
        (JobSurvey(name="a", series=2, exported=1), False, Level.OK),
        (JobSurvey(name="a", series=2, exported=1), True, Level.FAIL),
        (JobSurvey(name="a", series=2, native=1), None, Level.OK),
        (JobSurvey(name="a", series=2, native=1), True, Level.OK),
        (JobSurvey(name="a", series=2, native=1), False, Level.FAIL),
        (JobSurvey(name="a", series=2), None, Level.WARN),
    ],
)
def test_each_job_is_told_by_its_own_labels(
    job: JobSurvey,
    honor: bool | None,  # noqa: FBT001 - a parameter
    level: Level,
) -> None:
    look = TelemetryLook(screen=screen_with(0.0), survey=Survey(server="it", jobs=(job,)))
    found = telemetry.findings(look, RULES, honor_labels=honor, direct=False)
    assert [one.level for one in found if one.area is Area.LABELS] == [level]


def test_a_failed_screen_is_told_with_its_own_fix_and_what_is_known_all_the_same() -> None:
    survey = Survey(server="it", product="Prometheus", version="3.1", models={H100: {ENGINE: 1}})
    look = TelemetryLook(failure="it is slow; check its load", survey=survey)
    failed, *rest = telemetry.findings(look, RULES, honor_labels=None, direct=False)
    assert (failed.level, failed.fix) == (Level.FAIL, "check its load")
    assert "it is Prometheus 3.1" in rest[0].sentence


def test_findings_stand_by_area_the_worst_first() -> None:
    lines = [
        Finding(level=level, area=area, sentence="")
        for area in (Area.CLOCKS, Area.TELEMETRY)
        for level in Level
    ]
    found = checkup(lines)
    assert found.level is Level.FAIL
    assert [(one.area, one.level) for one in found.findings] == [
        (area, level) for area in (Area.TELEMETRY, Area.CLOCKS) for level in reversed(Level)
    ]
    assert checkup([]).level is Level.OK


def test_a_foreign_name_cannot_write_to_the_terminal() -> None:
    found = levels_as_printed(of_model(*EVERYTHING[:1], model="NVIDIA\x1b[2JX\n\x07"))
    assert not [one for one in found if not one.replace("\n", "").isprintable()]
    assert any("NVIDIA?[2JX??" in one for one in found)


def levels_as_printed(survey: Survey) -> list[str]:
    found = checkup(fields.findings(survey, RULES, proven=frozenset())).findings
    return [text for one in found for text in (one.sentence, one.fix)]


def test_long_lists_are_cut_and_numbers_agree() -> None:
    assert listed(list("abcde")) == "a, b, c, d, e"
    assert listed(list("abcdefg")) == "a, b, c, d, e and 2 more"
    assert [counted(n, "node") for n in (0, 1, 2)] == ["0 nodes", "1 node", "2 nodes"]
