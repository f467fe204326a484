"""What is right and wrong with the telemetry source: who answers, how labelled, how often. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from gpu_pruner.check.cluster import split
from gpu_pruner.check.finding import Area, Finding, Level, counted
from gpu_pruner.model.rules import LEAST_STEPS, Rules
from gpu_pruner.model.signals import Signal
from gpu_pruner.model.survey import JobSurvey, Survey
from gpu_pruner.model.telemetry import Screen
from gpu_pruner.model.units import MINUTE, Seconds
from gpu_pruner.observe.backends import Backend
from gpu_pruner.observe.profiles import generations_of

RECOMMENDED_THRESHOLD = 0.001
"""Engine ratio. Idle samples are exactly 0; 0.008 was seen of real work."""

_SCRAPE = (
    "scrape more often, in the exporter's ServiceMonitor:\n"
    "spec:\n"
    "  endpoints:\n"
    "  - port: gpu-metrics\n"
    "    interval: 30s"
)
_HONOR = "unset prometheus.honor_labels (--honor-labels): it is found out by asking"
_MAPPING = (
    "let the exporter map pods: DCGM_EXPORTER_KUBERNETES=true, the host path "
    "/var/lib/kubelet/pod-resources mounted, and KUBERNETES_GPU_ID_TYPE=device-name on GKE"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetryLook:
    """What the telemetry source said."""

    screen: Screen | None = None
    survey: Survey | None = None
    failure: str = ""
    """Why there is no screen."""
    trouble: str = ""
    """Why there is no survey."""


def findings(
    look: TelemetryLook, rules: Rules, *, honor_labels: bool | None, direct: bool
) -> Iterator[Finding]:
    """Say what is so of the source, its labels, its times and the threshold.

    Args:
        look: what it said.
        rules: for window and threshold.
        honor_labels: as set; None: found out by asking.
        direct: whether exporters are scraped directly.
    """
    if look.screen is None:
        sentence, fix = split(look.failure)
        fix = fix or "see docs/how-to/check-your-telemetry.md"
        yield _finding(Level.FAIL, f"No complete telemetry: {sentence}", fix)
    elif look.trouble:
        sentence, fix = split(look.trouble)
        yield _finding(Level.WARN, f"It could not be told in detail: {sentence}", fix)
    if look.survey is not None:
        yield from _source(look.survey, direct=direct)
        if not direct:
            yield from _labels(look.survey, honor_labels=honor_labels)
    if look.screen is not None:
        yield _interval(look.screen, rules)
        yield from _notes(look.screen, look.survey, direct=direct)
        yield _threshold(look.screen, rules)


def _source(survey: Survey, *, direct: bool) -> Iterator[Finding]:
    for why in survey.failures.values():
        sentence, fix = split(why)
        fix = fix or "curl the address from here; kubectl -n gpu-operator get pods -o wide"
        yield _finding(Level.FAIL, sentence, fix)
    if direct and survey.models:
        yield _finding(Level.OK, f"{survey.server}, {len(survey.failures)} of them failing")
    elif not direct and survey.product == Backend.UNKNOWN:
        yield _finding(
            Level.WARN,
            f"{survey.server} answers, and does not tell which product it is, so it cannot be "
            "asked for whole answers in its own words",
            "let /api/v1/status/buildinfo through, where a proxy holds it back",
        )
    elif not direct:
        product = f"{survey.product} {survey.version}".strip()
        yield _finding(Level.OK, f"{survey.server} answers and lets us ask; it is {product}")
    names = {name for metrics in survey.models.values() for name in metrics}
    if told := generations_of(names):
        yield _finding(Level.OK, f"Metric names are those of {' and of '.join(told)}")


def _labels(survey: Survey, *, honor_labels: bool | None) -> Iterator[Finding]:
    for job in survey.jobs:
        yield _job(job, honor_labels=honor_labels)


def _job(job: JobSurvey, *, honor_labels: bool | None) -> Finding:
    name = f"Job {job.name or '(without a name)'}"
    series = counted(job.series, "series", "series")
    if job.exported:
        told = (
            f"{name}: pods are in exported_pod (honorLabels false), on {job.exported} of {series}"
        )
        wrong, right = honor_labels is True, "false"
    elif job.native:
        told = f"{name}: pods are in pod (honorLabels true), on {job.native} of {series}"
        wrong, right = honor_labels is False, "true"
    else:
        told = f"{name}: none of {series} names a pod"
        fix = f"nothing, if no pod holds a GPU; else {_MAPPING}"
        return Finding(level=Level.WARN, area=Area.LABELS, sentence=told, fix=fix)
    if wrong:
        told += f", but honor_labels is set to {str(honor_labels).lower()}: nobody is found to hold"
        told += " a GPU"
        fix = f"{_HONOR}, or set it to {right}"
        return Finding(level=Level.FAIL, area=Area.LABELS, sentence=told, fix=fix)
    return Finding(level=Level.OK, area=Area.LABELS, sentence=told)


def _interval(screen: Screen, rules: Rules) -> Finding:
    """Compare the time between scrapes with the window, as the breaker WindowTooShort does."""
    interval, step = screen.scrape_interval_seconds, screen.period.step_seconds
    window = rules.window_seconds
    told = f"A sample every {interval:g} s; the window of {window / MINUTE:g} min is "
    told += counted(int(window // step), "step") + f" of {step:g} s"
    if window < LEAST_STEPS * step:
        sentence = f"{told}, and needs {LEAST_STEPS}: nothing can be judged"
        return _finding(Level.FAIL, sentence, f"{_enough(step)}; or {_SCRAPE}")
    if step > MINUTE:
        return _finding(Level.WARN, f"{told}: short work between two samples is not seen", _SCRAPE)
    return _finding(Level.OK, told)


def _enough(step: Seconds) -> str:
    return f"lengthen the window: -t {math.ceil(LEAST_STEPS * step / MINUTE)}"


def _notes(screen: Screen, survey: Survey | None, *, direct: bool) -> Iterator[Finding]:
    """Pass on what the source notes in every cycle, but for what is told here in detail."""
    told = set(survey.failures.values()) if survey is not None else set()
    # The first note of a server is its label scheme as a whole.
    for note in screen.notes if direct or survey is None else screen.notes[1:]:
        if note not in told and not note.startswith("honor_labels"):
            yield _finding(Level.OK, f"Noted: {note}")


def _threshold(screen: Screen, rules: Rules) -> Finding:
    """Advise on the threshold by what it would have overlooked in the time that was looked at."""
    threshold = rules.idle_threshold
    peaks: dict[str, float] = {}
    for column in screen.columns:
        if column.signal is Signal.ENGINE and not column.moves:
            for subject, steps in column.series:
                peak = max((value for _, value in steps if value >= 0), default=0.0)
                device = str(subject.device)
                peaks[device] = max(peak, peaks.get(device, 0.0))
    between = sum(RECOMMENDED_THRESHOLD <= peak < threshold for peak in peaks.values())
    if threshold <= RECOMMENDED_THRESHOLD:
        return _threshold_is(
            Level.OK, f"The idle threshold is {threshold:g}, as recommended or less"
        )
    fix = f"--idle-threshold {RECOMMENDED_THRESHOLD:g}"
    if between:
        told = f"{counted(between, 'device')} peaked between {RECOMMENDED_THRESHOLD:g} and the "
        told += f"threshold of {threshold:g}: light work that counts as none"
        return _threshold_is(Level.WARN, told, fix)
    told = f"The idle threshold is {threshold:g}; {RECOMMENDED_THRESHOLD:g} is safer, and would "
    told += "change nothing: no device peaked between the two"
    return _threshold_is(Level.OK, told)


def _threshold_is(level: Level, sentence: str, fix: str = "") -> Finding:
    return Finding(level=level, area=Area.THRESHOLD, sentence=sentence, fix=fix)


def _finding(level: Level, sentence: str, fix: str = "") -> Finding:
    return Finding(level=level, area=Area.TELEMETRY, sentence=sentence, fix=fix)
