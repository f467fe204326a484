"""`gpu-pruner migrate`: the Rust tool's manifest to settings, and what will be different."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TextIO

import click
import yaml

from gpu_pruner.cli.differences import differences
from gpu_pruner.cli.given import layer_of_flags
from gpu_pruner.cli.options import controller_options, serving_options
from gpu_pruner.cli.rust_flags import without_effect
from gpu_pruner.cli.rust_manifests import read_invocation
from gpu_pruner.errors import ConfigurationError
from gpu_pruner.settings.document import Keys
from gpu_pruner.settings.fields import all_settings, is_secret
from gpu_pruner.settings.layers import Written, nested
from gpu_pruner.settings.loading import load
from gpu_pruner.settings.problems import Problem, nearest, refused
from gpu_pruner.settings.schema import Settings
from gpu_pruner.settings.telling import plain

_MENTIONS = "SLACK_NAMESPACE_MENTIONS"
"""The one variable of it that is no secret and no name: its flag is called alike, and wins."""
_LARGEST = 1 << 20
"""Characters of what is read."""


@click.command()
@click.argument("file", type=click.File("r", encoding="utf-8"), metavar="FILE")
def migrate(file: TextIO) -> None:
    """Turn the Rust tool's manifest, or its command line, into a settings file.

    FILE is a Deployment, CronJob or Pod that runs it, or a command line; - reads standard input.
    The settings are written to standard output, what will be different to standard error.
    """
    try:
        text = file.read(_LARGEST + 1)
    except UnicodeDecodeError:
        raise ConfigurationError("is not UTF-8 text", path=file.name) from None
    if len(text) > _LARGEST:
        raise ConfigurationError("is too large for a manifest", path=file.name)
    invocation = read_invocation(text)
    mentions = invocation.variables.get(_MENTIONS)
    given = {} if mentions is None else {_MENTIONS.lower(): mentions}
    flags = given | parsed(invocation.arguments)
    settings = settings_text(flags)
    variables = {name: value or "set" for name, value in invocation.variables.items()}
    sys.stdout.write(settings)
    for line in (*without_effect(flags, variables), *differences(flags | variables)):
        sys.stderr.write(f"{line}\n")


@click.command(add_help_option=False)
@click.option("-d", "--daemon-mode", is_flag=True)
@controller_options
@serving_options
def _rust_tool(**flags: object) -> None:
    """Take what the Rust tool takes."""


def parsed(arguments: tuple[str, ...]) -> dict[str, object]:
    """Return the flags that were given, by parameter.

    Raises:
        ConfigurationError: flags that there are not, all of them; or a value that is none.
    """
    words, unknown = list(arguments), list[Problem]()
    known = [name for one in _rust_tool.params for name in one.opts]
    while True:
        try:
            context = _rust_tool.make_context("gpu-pruner", list(words))
        except click.NoSuchOption as error:
            name = error.option_name
            unknown.append(Problem(name, "", f"is no flag{_near(name, known)}"))
            rest = [word for word in words if word.partition("=")[0] != name]
            if len(rest) == len(words):  # within a cluster of letters
                raise refused(unknown) from None
            words = rest
        except click.UsageError as error:
            if unknown:  # what is left over is the value of a flag that there is not
                raise refused(unknown) from None
            raise ConfigurationError(error.format_message()) from None
        else:
            if unknown:
                raise refused(unknown)
            return {
                name: value
                for name, value in context.params.items()
                if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
            }


def _near(name: str, known: list[str]) -> str:
    return nearest(name, [one for one in known if one.startswith("--")])


def settings_text(flags: Mapping[str, object]) -> str:
    """Return the settings that say the same, as YAML, without secrets.

    Raises:
        ConfigurationError: what was given is no valid settings.
    """
    layer, problems = layer_of_flags(flags)
    settings = load([layer], problems=problems).settings
    fields = all_settings(Settings)
    kept: dict[Keys, Written] = {}
    for path, written in layer.items():
        keys = path if path in fields else path[:-1]  # names with values are taken apart
        if keys not in fields or is_secret(fields[keys]):
            continue
        section = settings if len(keys) == 1 else getattr(settings, keys[0])
        if section is not None:
            kept[keys] = Written(plain(getattr(section, keys[-1]), fields[keys]), written.place)
    return yaml.safe_dump(nested(kept), sort_keys=False, allow_unicode=True)
