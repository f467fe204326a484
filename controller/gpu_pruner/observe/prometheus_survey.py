"""What a Prometheus-compatible server is asked for `gpu-pruner check`, and how that is read. Pure.

The probe tells how much there is of what; this tells of whom: which job has which label scheme, and
which GPU model exports which field. Never asked in a cycle. Called by `observe.prometheus`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from gpu_pruner.decide.meters import is_listed
from gpu_pruner.model.survey import JobSurvey
from gpu_pruner.observe import labels
from gpu_pruner.observe.profiles import BY_METRIC, Use
from gpu_pruner.observe.prometheus_probe import EXPORTERS, Probe
from gpu_pruner.observe.prometheus_replies import Series
from gpu_pruner.observe.promql import Scope

_MODE = "mode"
_LABELS = msgspec.json.Decoder(dict[str, str])


def jobs_query(probe: Probe, scope: Scope) -> str:
    """Return the query for the series of each job, and how many of them name a pod how."""
    metrics = [one.metric for one in probe.fields if one.use is Use.PRIMARY]
    metrics = metrics or [one.metric for one in probe.fields]
    names = f'__name__=~"{"|".join(metrics)}"'
    own = (f'{labels.POD}!=""', f'{labels.EXPORTED_POD}=""', f'{labels.POD}!~"{EXPORTERS}"')
    rows = {
        "series": scope.selector("", names),
        "exported": scope.selector("", names, f'{labels.EXPORTED_POD}!=""'),
        "native": scope.selector("", names, *own),
    }
    return " or ".join(
        f'label_replace(count by ({labels.JOB}) ({one}), "{_MODE}", "{mode}", "", "")'
        for mode, one in rows.items()
    )


def read_jobs(rows: Iterable[Series]) -> tuple[JobSurvey, ...]:
    """Read the answer to `jobs_query`."""
    counts: dict[str, dict[str, int]] = {}
    for told, count in _counted(rows):
        counts.setdefault(told.get(labels.JOB, ""), {})[told.get(_MODE, "")] = count
    return tuple(
        JobSurvey(
            name=name,
            series=found.get("series", 0),
            exported=found.get("exported", 0),
            # Where any series has exported_pod, a pod alone is the exporter's own.
            native=0 if found.get("exported") else found.get("native", 0),
        )
        for name, found in sorted(counts.items())
    )


def models_query(probe: Probe, scope: Scope) -> str:
    """Return the query for the devices of each GPU model that export each field."""
    names = f'__name__=~"{"|".join(one.metric for one in probe.fields)}"'
    kept = ", ".join(("__name__", *labels.MODELS))
    device = ", ".join(labels.DEVICE)
    return f"count by ({kept}) (count by ({kept}, {device}) ({scope.selector('', names)}))"


def read_models(rows: Iterable[Series]) -> Mapping[str, Mapping[str, int]]:
    """Read the answer to `models_query`."""
    found: dict[str, dict[str, int]] = {}
    for told, count in _counted(rows):
        model = next((told[name] for name in labels.MODELS if told.get(name)), "")
        metrics = found.setdefault(model, {})
        name = told.get("__name__", "")
        metrics[name] = metrics.get(name, 0) + count
    return found


def has_doubtful(models: Mapping[str, Iterable[str]]) -> bool:
    """Whether a zero of some model is believed only once it was seen to show work.

    Args:
        models: GPU model to the metrics that it exports.
    """
    return any(
        BY_METRIC[metric].use is Use.PRIMARY and not is_listed(model, BY_METRIC[metric].signal)
        for model, metrics in models.items()
        for metric in metrics
        if metric in BY_METRIC
    )


def _counted(rows: Iterable[Series]) -> Iterable[tuple[dict[str, str], int]]:
    for row in rows:
        if row.value is not None:
            yield _LABELS.decode(row.metric), int(float(row.value[1]))
