"""Values from a file, the environment and flags to `Settings`, with every error at once."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from gpu_pruner.settings.document import Document, Keys, read_document
from gpu_pruner.settings.fields import all_settings, field_at, is_secret, names_at
from gpu_pruner.settings.layers import (
    DEFAULT,
    Layer,
    Origin,
    Place,
    Written,
    flat,
    layer_of_document,
    merged,
    nested,
    with_one_source,
    without_foreign_credentials,
)
from gpu_pruner.settings.presets import layer_of_preset
from gpu_pruner.settings.problems import Problem, findings, message_of, refused
from gpu_pruner.settings.schema import Settings

_FILES: tuple[Keys, ...] = (
    ("prometheus", "token_file"),
    ("prometheus", "ca_file"),
    ("kubernetes", "kubeconfig"),
    ("ledger", "password_file"),
    ("report", "webhook_file"),
    ("report", "prices_file"),
)
"""Settings that name a file which has to be there."""

_OF_ALL: tuple[Keys, ...] = (("window_seconds",), ("scrape", "interval_seconds"))
"""What an error in the whole is about: the one check there is compares these two."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """Settings, and where each of them was written."""

    settings: Settings
    written: Mapping[Keys, Written] = field(default_factory=dict)

    def place(self, keys: Keys) -> Place:
        """Return where the value that holds was written."""
        found = self.written.get(keys)
        if found is not None:
            return found.place
        below = (one.place for path, one in self.written.items() if path[: len(keys)] == keys)
        return next(below, DEFAULT)


def load_settings(values: Mapping[str, object], *, file: Path | None = None) -> Settings:
    """Check values against the schema.

    Args:
        values: field name to value; a nested section is a mapping. None values are left out.
        file: YAML with more of them; what `values` say wins.

    Raises:
        ConfigurationError: the file cannot be read; or all that is wrong, one line each with the
            path of the field.
    """
    place = Place(Origin.FLAG, "")
    told = {keys: Written(value, place) for keys, value in flat(values) if value is not None}
    return load([told], document=None if file is None else read_document(file)).settings


def load(
    layers: Iterable[Layer],
    *,
    document: Document | None = None,
    problems: Iterable[Problem] = (),
    files_must_exist: bool = False,
) -> Loaded:
    """Lay layers over the file's, and check what comes out.

    Args:
        layers: of variables and flags, the lowest first.
        document: the settings file.
        problems: what is known to be wrong already.
        files_must_exist: whether files that the settings name are looked for.

    Raises:
        ConfigurationError: everything that is wrong, one line each with its place.
    """
    document = document or Document("")
    told = merged([layer_of_document(document), *layers])
    preset = told.get(("preset",))
    told = merged([layer_of_preset(preset.value if preset else None), told])
    found, conflicts = with_one_source(without_foreign_credentials(told))
    wrong = [*problems, *conflicts]
    try:
        settings = Settings.model_validate(nested(_with_words(found)))
    except ValidationError as error:
        wrong += _invalid(error, found, document)
        raise refused(wrong) from None
    if files_must_exist:
        wrong += _missing_files(settings, found, document)
    if wrong:
        raise refused(wrong)
    return Loaded(settings, found)


def _with_words(written: Mapping[Keys, Written]) -> dict[Keys, Written]:
    """Leave out sections that say nothing: all their lines may be comments."""
    sections = {keys[:length] for keys in all_settings(Settings) for length in range(1, len(keys))}
    return {
        keys: one
        for keys, one in written.items()
        if not (keys in sections and one.value in (None, {}))
    }


def _invalid(
    error: ValidationError, written: Mapping[Keys, Written], document: Document
) -> Iterable[Problem]:
    for finding in findings(error):
        keys = finding.keys
        if not keys:
            keys = next((some for some in _OF_ALL if some in written), _OF_ALL[0])
        setting = field_at(Settings, keys)
        message = message_of(
            finding,
            known=names_at(Settings, keys[:-1]),
            elsewhere=map(".".join, all_settings(Settings)),
            secret=setting is not None and is_secret(setting),
        )
        yield Problem(_place(keys, written, document), ".".join(keys), message)


def _place(keys: Keys, written: Mapping[Keys, Written], document: Document) -> str:
    """Return where a wrong value stands: it, or the nearest that was written around it."""
    for length in range(len(keys), 0, -1):
        around = keys[:length]
        below = (one for path, one in written.items() if path[:length] == around)
        found = written.get(around) or next(below, None)
        if found is not None:
            return document.place(keys) if found.place.origin is Origin.FILE else found.place.text
    return ""


def _missing_files(
    settings: Settings, written: Mapping[Keys, Written], document: Document
) -> Iterable[Problem]:
    for keys in _FILES:
        section = getattr(settings, keys[0])
        path = getattr(section, keys[1]) if section is not None else None
        if path is not None and not (path.is_file() and os.access(path, os.R_OK)):
            place = written[keys].place.text if keys in written else ""
            yield Problem(place, ".".join(keys), f"{path} is not a readable file")
    for below, path in settings.channels.files():
        if not (path.is_file() and os.access(path, os.R_OK)):
            yield _in_channels(below, f"{path} is not a readable file", written, document)
    for below, secret in settings.channels.secrets():
        if problem := secret.problem():
            yield _in_channels(below, problem, written, document)


def _in_channels(
    below: Keys, message: str, written: Mapping[Keys, Written], document: Document
) -> Problem:
    keys = ("channels", *below)
    return Problem(_place(keys, written, document), ".".join(keys), message)
