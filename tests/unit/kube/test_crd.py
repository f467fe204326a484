"""The shipped CRD is what the type says, and what an API server accepts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from gpu_pruner.kube.crd import crd, crd_text, main
from gpu_pruner.model.book import Phase

SHIPPED = Path(__file__).parents[3] / "deploy" / "crds" / "gpuworkloads.yaml"
Schema = dict[str, object]


def version() -> Schema:
    spec = crd()["spec"]
    assert isinstance(spec, dict)
    (only,) = spec["versions"]
    assert isinstance(only, dict)
    return only


def properties(schema: Schema, path: str = "") -> Iterator[tuple[str, Schema]]:
    inner = schema.get("properties", {})
    assert isinstance(inner, dict)
    for name, one in inner.items():
        yield f"{path}.{name}", one
        yield from properties(one, f"{path}.{name}")


def schema() -> Schema:
    found = version()["schema"]
    assert isinstance(found, dict)
    root = found["openAPIV3Schema"]
    assert isinstance(root, dict)
    return root


def test_the_shipped_file_is_what_the_type_says() -> None:
    assert SHIPPED.read_text(encoding="utf-8") == crd_text()
    assert yaml.safe_load(crd_text()) == crd()


def test_the_schema_is_structural() -> None:
    text = crd_text()
    for word in ("$ref", "$defs", "anyOf", "oneOf", "'null'", "nullable"):
        assert word not in text
    for path, one in properties(schema()):
        assert isinstance(one.get("type"), str), path


def test_every_field_is_described() -> None:
    fields = dict(properties(schema()))
    for path, one in fields.items():
        if path.startswith((".spec", ".status")):
            assert one.get("description"), path
    assert len(fields) > 25


def test_times_are_times_and_phases_are_named() -> None:
    fields = dict(properties(schema()))
    for path in (".spec.keepUntil", ".status.pauseAt", ".status.pause.at"):
        assert fields[path]["format"] == "date-time"
    assert fields[".status.phase"]["enum"] == [phase.value for phase in Phase]


def test_the_root_is_required_and_cannot_be_changed() -> None:
    fields = dict(properties(schema()))
    assert fields[".spec"]["required"] == ["rootRef"]
    assert fields[".spec.rootRef"]["required"] == ["apiVersion", "kind", "name", "uid"]
    assert fields[".spec.rootRef"]["x-kubernetes-validations"] == [
        {"rule": "self == oldSelf", "message": "rootRef cannot be changed"}
    ]


def test_status_is_a_subresource_and_the_columns_are_fields() -> None:
    assert version()["subresources"] == {"status": {}}
    columns = version()["additionalPrinterColumns"]
    assert isinstance(columns, list)
    paths = {path for path, _ in properties(schema())}
    assert {column["jsonPath"] for column in columns} <= paths


def test_a_file_that_differs_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "crd.yaml"
    assert CliRunner().invoke(main, ["--write", str(path)]).exit_code == 0
    assert CliRunner().invoke(main, ["--check", str(path)]).exit_code == 0
    path.write_text(crd_text() + "\n", encoding="utf-8")
    refused = CliRunner().invoke(main, ["--check", str(path)])
    assert refused.exit_code == 1
    assert "run with --write" in refused.output


def test_without_a_file_it_is_printed() -> None:
    assert CliRunner().invoke(main).output == crd_text()


@pytest.mark.parametrize("name", ["gpuworkloads.yaml"])
def test_the_kustomization_ships_every_crd(name: str) -> None:
    kustomization = yaml.safe_load((SHIPPED.parent / "kustomization.yaml").read_text("utf-8"))
    assert name in kustomization["resources"]
    files = {path.name for path in SHIPPED.parent.glob("*.yaml")} - {"kustomization.yaml"}
    assert files == set(kustomization["resources"])
