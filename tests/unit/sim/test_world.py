from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_pruner.errors import ConfigurationError
from gpu_pruner.sim.world import Behaviour, World, integral, value_at, within

WORLD = """
nodes:
  - {name: node-1, gpus: 8}
  - {name: node-2, gpus: 2, model: NVIDIA L40S, exporter_gaps: [[10, 12.5]]}
workloads:
  - kind: Deployment
    namespace: team-a
    name: serve
    replicas: 2
    started_minutes_ago: 90
    behaviour:
      activity: [[-90, 0.7], [5, 0]]
    overrides:
      - {pod: 1, gpu: 0, behaviour: {activity: [[0, 0.4]]}}
      - {pod: 1, behaviour: {gaps: [[1, 2]]}}
"""

minutes = st.floats(-1000, 1000, allow_nan=False)
step_lists = st.lists(st.tuples(minutes, st.floats(0, 1)), max_size=6).map(
    lambda steps: tuple(sorted(steps))
)


def test_a_world_is_read_from_yaml(tmp_path: Path) -> None:
    path = tmp_path / "world.yaml"
    path.write_text(WORLD, encoding="utf-8")
    world = World.load(path)
    assert [node.model for node in world.nodes] == ["NVIDIA H100 80GB HBM3", "NVIDIA L40S"]
    workload = world.workload("Deployment", namespace="team-a", name="serve")
    assert workload is not None
    assert workload.behaviour_of(0, 0).activity == ((-90.0, 0.7), (5.0, 0.0))
    assert workload.behaviour_of(1, 0).activity == ((0.0, 0.4),)
    assert workload.behaviour_of(1, 1).gaps == ((1.0, 2.0),)


@pytest.mark.parametrize(
    ("document", "place"),
    [
        ("nodes: [{name: node-1, gpu: 8}]", "$.nodes[0]"),
        ("nodes: [{name: node-1, gpus: -1}]", "$.nodes[0].gpus"),
        ("workloads: [{kind: Deployment, namespace: a}]", "$.workloads[0]"),
        ("workloads: [{kind: Pod, namespace: a, name: b, gpus: one}]", "$.workloads[0].gpus"),
        ("clouds: []", "clouds"),
    ],
)
def test_a_wrong_world_is_refused_with_its_place(document: str, place: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        World.parse(document)
    assert place in str(error.value)


def test_a_file_that_is_none_is_refused_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as error:
        World.load(tmp_path / "absent.yaml")
    assert "absent.yaml" in str(error.value)


def test_a_value_holds_until_the_next_and_the_first_also_before() -> None:
    steps = ((-10.0, 0.5), (0.0, 0.0), (7.0, 1.0))
    assert [value_at(steps, at) for at in (-99.0, -10.0, -0.1, 0.0, 6.9, 7.0)] == [
        0.5,
        0.5,
        0.5,
        0.0,
        0.0,
        1.0,
    ]


def test_a_span_includes_its_begin_and_not_its_end() -> None:
    assert [within(((1.0, 2.0),), at) for at in (0.9, 1.0, 1.9, 2.0)] == [False, True, True, False]


def test_the_integral_of_a_known_list() -> None:
    assert integral(((0.0, 0.5), (10.0, 1.0)), start=5.0, end=12.0) == 0.5 * 5 + 2


@given(step_lists, minutes, minutes, minutes)
def test_an_integral_is_the_sum_of_its_parts(
    steps: tuple[tuple[float, float], ...], one: float, two: float, three: float
) -> None:
    start, middle, end = sorted((one, two, three))
    whole = integral(steps, start=start, end=end)
    parts = integral(steps, start=start, end=middle) + integral(steps, start=middle, end=end)
    assert whole == pytest.approx(parts, abs=1e-6)
    assert 0 <= whole <= (end - start) + 1e-6


def test_an_idle_gpu_is_the_default() -> None:
    assert value_at(Behaviour().activity, 0.0) == 0
