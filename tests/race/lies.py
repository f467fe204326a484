"""The documented ways in which idle telemetry lies, each as a workload that it happens to.

Every lie here can be seen through by what is exported. What no exported signal shows (a wedged
profiling module where utilisation is not exported either; a kernel of a millisecond on a GPU that
exports nothing but utilisation) is in nobody's reach and not in the race.
"""

from __future__ import annotations

from collections.abc import Callable

from race.cluster import Maker, Workload
from race.telemetry import PROFILING, relabelled
from race.truth import (
    MINUTE,
    Span,
    Times,
    Work,
    bursty,
    busy,
    encoding,
    idle,
    light,
)
from support.worlds import ENCODER, ENERGY, ENGINE, POWER, UTIL

GARBAGE = (218322032.0, 9.223372036854775e18, float("nan"), -1.0)
UNLABELLED = {"namespace": "", "pod": "", "container": ""}
Lie = Callable[[Maker], None]


def wedged(maker: Maker) -> None:
    """The profiling module of a node reads 0 under full load; utilisation tells."""
    node = maker.name("node")
    for behaviour in (busy, idle):
        one = maker.workload([[behaviour]], lie="wedged profiling", node=node)
        one.gpus[0].main.overwrite(PROFILING, 0.0)


def decayed(maker: Maker) -> None:
    """One GPU of a busy pod reads 0, and the others are idle."""
    one = maker.workload([[idle, busy]], lie="profiling decays on one GPU")
    one.gpus[1].main.overwrite(PROFILING, 0.0)


def mig_utilisation(maker: Maker) -> None:
    """Slices read utilisation 0 whatever they do; one of them has no profiling metrics."""
    for number, keeps in enumerate((True, False)):
        one = maker.workload([[busy]], lie="MIG utilisation 0", slices=(str(number + 1),))
        strip = one.gpus[0].main
        strip.sheet[UTIL] = dict.fromkeys(strip.sheet[ENGINE], 0.0)
        if not keeps:
            strip.drop(*PROFILING)


def encoder_only(maker: Maker) -> None:
    """Video is encoded while the engine is next to idle."""
    maker.workload([[encoding]], lie="encoder only")


def gap(maker: Maker) -> None:
    """All the work was done while nothing was scraped."""
    start, length = maker.rng.uniform(12, 30), maker.rng.uniform(5, 10)
    one = maker.workload(
        [[lambda times, _: (times.span(start, length, engine=0.8),)]], lie="work in a gap"
    )
    span = one.gpus[0].work[0]
    _hide(one, span.begin - 30, span.end + 30)


def _hide(one: Workload, begin: float, end: float) -> None:
    for gpu in one.gpus:
        gpu.strips = [strip.keep(lambda at: not begin < at <= end) for strip in gpu.strips]


def frozen(maker: Maker) -> None:
    """The host engine died and its last values are served for ever, while work begins."""
    since = maker.times.end - maker.rng.uniform(6, 100) * MINUTE

    def starts_later(times: Times, _: object) -> Work:
        return (Span(since + MINUTE, times.end, engine=0.9),)

    one = maker.workload([[starts_later]], lie="frozen values")
    one.gpus[0].main.freeze(since)


def zero_fill(maker: Maker) -> None:
    """Sharers of one GPU read utilisation 0 each, although one of them works."""
    node = maker.name("node")
    maker.sharing[node] = "time-slicing"
    uuid = f"GPU-{maker.name('shared')}"
    for number, behaviour in enumerate((bursty, idle)):
        one = maker.workload([[behaviour]], lie="zero fill on a shared GPU", node=node)
        strip = one.gpus[0].main
        strip.labels |= {"UUID": uuid, "vgpu": str(number)}
        strip.overwrite((UTIL,), 0.0)
        if number:
            strip.overwrite(PROFILING, 0.0)


def mps_elsewhere(maker: Maker) -> None:
    """Under MPS the label names a GPU that the processes are not on."""
    node = maker.name("node")
    maker.sharing[node] = "mps"
    one = maker.workload([[busy]], lie="MPS label on another GPU", node=node)
    strip = one.gpus[0].main
    strip.labels["vgpu"] = "0"
    maker.stranger(one.gpus[0].work, node)
    strip.overwrite((*PROFILING, UTIL), 0.0)


def one_sharer_labelled(maker: Maker) -> None:
    """Of several sharers only one is labelled; the others have no series."""
    node = maker.name("node")
    maker.sharing[node] = "time-slicing"
    one = maker.workload([[busy]], lie="unlabelled sharer", node=node)
    one.gpus[0].strips = []
    other = maker.workload([[idle]], lie="unlabelled sharer", node=node)
    other.gpus[0].main.overwrite((UTIL,), 0.0)


def previous_owner(maker: Maker) -> None:
    """A young pod has the GPU of a busy one that has gone, or the other way round."""
    born = maker.times.end - maker.rng.uniform(12, 60) * MINUTE
    one = maker.workload([[idle]], lie="previous owner", created_at=born)
    strip = one.gpus[0].main
    gone = {"namespace": "team-gone", "pod": "gone-0"}
    one.gpus[0].strips = relabelled(strip, gone, 0.0, born)
    one.gpus[0].strips[1].overwrite((ENGINE,), 0.8)


def recreated(maker: Maker) -> None:
    """A pod of the same name was idle for long; its successor is young and still loading."""
    born = maker.times.end - maker.rng.uniform(2, 30) * MINUTE
    maker.workload([[idle]], lie="recreated pod", created_at=born)


def garbage(maker: Maker) -> None:
    """Impossible values, now and then or always, on a GPU whose real work they hide."""
    one = maker.workload([[busy]], lie="garbage values")
    strip, value = one.gpus[0].main, maker.rng.choice(GARBAGE)
    strip.overwrite(PROFILING, 0.0)
    strip.overwrite((UTIL,), value if maker.rng.random() < 0.5 else 0.0)
    moment = maker.times.end - maker.rng.uniform(5, 30) * MINUTE
    strip.overwrite((UTIL,), value, since=moment, until=moment + 2 * MINUTE)


def light_use(maker: Maker) -> None:
    """Requests are answered one at a time: utilisation is rounded to 0."""
    one = maker.workload([[light, light]], lie="light use")
    for gpu in one.gpus:
        gpu.main.overwrite((UTIL,), 0.0)


def sampled(maker: Maker) -> None:
    """Short bursts that no sample of utilisation meets; the engine's average has them."""
    one = maker.workload(
        [[lambda times, _: times.always(engine=0.04)]], lie="bursts between samples"
    )
    one.gpus[0].main.overwrite((UTIL,), 0.0)


def sampled_coarsely(maker: Maker) -> None:
    """Only utilisation is exported, and most of its samples miss the work."""
    start = maker.rng.uniform(38, 60)
    one = maker.workload(
        [[lambda times, _: (times.span(start, 1, engine=0.9),)]], lie="utilisation only"
    )
    one.gpus[0].main.drop(*PROFILING)


def restarted(maker: Maker) -> None:
    """The exporter comes back without profiling metrics, and with stale zeros for a moment."""
    cut = maker.times.end - maker.rng.uniform(8, 25) * MINUTE
    one = maker.workload([[busy]], lie="exporter restart")
    strip = one.gpus[0].main
    after = strip.keep(lambda at: at > cut + MINUTE)
    after.target["instance"] = "10.0.0.2:9400"
    after.drop(ENGINE)
    one.gpus[0].strips = [strip.keep(lambda at: at <= cut), after]
    one.gpus[0].strips[0].overwrite(PROFILING, 0.0)
    for each in one.gpus[0].strips:
        each.overwrite((UTIL,), 0.0, until=cut - 3 * MINUTE)


def rescaled(maker: Maker) -> None:
    """A pipeline divides utilisation by 100 under the same name, and profiling reads 0."""
    one = maker.workload([[busy]], lie="utilisation rescaled")
    row = one.gpus[0].main.sheet[UTIL]
    row.update({at: value / 100 for at, value in row.items()})
    one.gpus[0].main.overwrite(PROFILING, 0.0)


def label_flap(maker: Maker) -> None:
    """The busy samples lost their pod label."""
    start, length = maker.rng.uniform(8, 30), maker.rng.uniform(1, 6)
    one = maker.workload(
        [[lambda times, _: (times.span(start, length, engine=0.8),)]], lie="label flap"
    )
    span = one.gpus[0].work[0]
    one.gpus[0].strips = relabelled(one.gpus[0].main, UNLABELLED, span.begin - 30, span.end + 30)


def missing_device(maker: Maker) -> None:
    """The GPU that works is not reported at all."""
    one = maker.workload([[idle, busy]], lie="missing device")
    one.gpus[1].strips = []


def unattributed(maker: Maker) -> None:
    """No series names the pod (DRA, or a broken mapping): not zero GPUs, but unknown ones."""
    one = maker.workload([[busy]], lie="no pod label")
    labels = one.gpus[0].main.labels
    for name in UNLABELLED:
        labels.pop(name)


def disappeared(maker: Maker) -> None:
    """The newest minutes are missing, and that is when it works."""
    begin = maker.times.end - maker.rng.uniform(7, 20) * MINUTE
    one = maker.workload(
        [[lambda times, _: (Span(begin, times.end, engine=0.9),)]], lie="telemetry ended"
    )
    _hide(one, begin, 1e12)


def not_live(maker: Maker) -> None:
    """Neither energy nor power is exported, and everything else reads a stuck 0."""
    one = maker.workload([[busy]], lie="stuck zeros")
    strip = one.gpus[0].main
    strip.drop(ENERGY, POWER)
    strip.overwrite((*PROFILING, UTIL, ENCODER), 0.0)


LIES: tuple[Lie, ...] = (
    wedged,
    decayed,
    mig_utilisation,
    encoder_only,
    gap,
    frozen,
    zero_fill,
    mps_elsewhere,
    one_sharer_labelled,
    previous_owner,
    recreated,
    garbage,
    light_use,
    sampled,
    sampled_coarsely,
    restarted,
    rescaled,
    label_flap,
    missing_device,
    unattributed,
    disappeared,
    not_live,
)
