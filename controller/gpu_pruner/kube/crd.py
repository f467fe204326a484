"""The CustomResourceDefinition of `GPUWorkload`, made from its type.

``python -m gpu_pruner.kube.crd --write FILE`` writes it, ``--check FILE`` fails when the file says
something else; without either it is printed. The schema is structural, as the API server demands:
no references, no unions, every field described.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click
import yaml
from msgspec import inspect

from gpu_pruner.kube.gpuworkload_spec import GPUWorkloadSpec
from gpu_pruner.kube.gpuworkloads import GPUWorkloadStatus
from gpu_pruner.kube.resources import GPUWORKLOADS

_HEADER = "# Made by `python -m gpu_pruner.kube.crd --write FILE` from kube/gpuworkload*.py.\n"
_ABOUT = (
    "A workload that holds GPUs: what people want of it, and what the controller found and did."
)
_SHORT_NAME = "gpw"
_WIDTH = 100

_PLAIN: Mapping[type, Mapping[str, str]] = {
    inspect.StrType: {"type": "string"},
    inspect.IntType: {"type": "integer", "format": "int64"},
    inspect.BoolType: {"type": "boolean"},
}

_COLUMNS: tuple[tuple[str, str, str], ...] = (
    ("Kind", "string", ".spec.rootRef.kind"),
    ("Name", "string", ".spec.rootRef.name"),
    ("Phase", "string", ".status.phase"),
    ("Verdict", "string", ".status.verdict"),
    ("Reason", "string", ".status.reason"),
    ("Idle-Since", "date", ".status.idleSince"),
    ("Pause-At", "string", ".status.pauseAt"),
    ("GPUs", "integer", ".status.gpus"),
    ("Kept-Until", "string", ".spec.keepUntil"),
)
"""``kubectl get gpw -A`` is the countdown list. A ``date`` shows as an age, so a time to come is a
string: kubectl shows the age of a moment in the future as invalid."""


def crd() -> dict[str, object]:
    """Return the CustomResourceDefinition."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": GPUWORKLOADS.full_name},
        "spec": {
            "group": GPUWORKLOADS.group,
            "scope": "Namespaced",
            "names": {
                "kind": GPUWORKLOADS.kind,
                "listKind": f"{GPUWORKLOADS.kind}List",
                "plural": GPUWORKLOADS.plural,
                "singular": GPUWORKLOADS.kind.lower(),
                "shortNames": [_SHORT_NAME],
            },
            "versions": [_version()],
        },
    }


def crd_text() -> str:
    """Return the CustomResourceDefinition as the file in ``deploy/crds`` has it."""
    return _HEADER + yaml.safe_dump(crd(), sort_keys=False, width=_WIDTH, allow_unicode=True)


def _version() -> dict[str, object]:
    return {
        "name": GPUWORKLOADS.version,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "additionalPrinterColumns": [
            {"name": name, "type": kind, "jsonPath": path} for name, kind, path in _COLUMNS
        ],
        "schema": {
            "openAPIV3Schema": {
                "type": "object",
                "description": _ABOUT,
                "required": ["spec"],
                "properties": {
                    "apiVersion": {"type": "string"},
                    "kind": {"type": "string"},
                    "metadata": {"type": "object"},
                    "spec": _schema(inspect.type_info(GPUWorkloadSpec)),
                    "status": _schema(inspect.type_info(GPUWorkloadStatus)),
                },
            }
        },
    }


def _schema(info: inspect.Type) -> dict[str, object]:
    """Return the structural schema of a type.

    Raises:
        KeyError: the type has no structural schema; only a change of the Structs can cause it.
    """
    match info:
        case inspect.Metadata(type=inner, extra_json_schema=extra):
            found = {**_schema(inner), **(extra or {})}
        case inspect.UnionType(types=types):
            # Absence is how a structural schema says null.
            (one,) = (kind for kind in types if not isinstance(kind, inspect.NoneType))
            found = _schema(one)
        case inspect.StructType(cls=cls, fields=fields):
            found = _object(cls, fields)
        case inspect.VarTupleType(item_type=item):
            found = {"type": "array", "items": _schema(item)}
        case inspect.DictType(value_type=value):
            found = {"type": "object", "additionalProperties": _schema(value)}
        case inspect.EnumType(cls=cls):
            found = {"type": "string", "enum": [member.value for member in cls]}
        case _:
            found = dict(_PLAIN[type(info)])
    return found


def _object(cls: type, fields: tuple[inspect.Field, ...]) -> dict[str, object]:
    required = [one.encode_name for one in fields if one.required]
    return {
        "type": "object",
        "description": " ".join((cls.__doc__ or "").split()),
        **_given(required=required or None),
        "properties": {one.encode_name: _schema(one.type) for one in fields},
    }


def _given(**words: object) -> Mapping[str, object]:
    return {name: value for name, value in words.items() if value is not None}


@click.command()
@click.option("--write", type=click.Path(path_type=Path), help="Write the file.")
@click.option("--check", type=click.Path(path_type=Path), help="Fail unless the file says so.")
def main(write: Path | None, check: Path | None) -> None:
    """Write, check or print the CustomResourceDefinition."""
    if write is not None:
        write.write_text(crd_text(), encoding="utf-8")
    elif check is None:
        click.echo(crd_text(), nl=False)
    elif check.read_text(encoding="utf-8") != crd_text():
        raise click.ClickException(f"{check} is not what the type says; run with --write")


if __name__ == "__main__":
    main()
