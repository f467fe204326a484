"""The commands: what each takes, what it calls, and how its errors end.

Without a sub-command the program behaves as the Rust tool: one pass, or for ever with `-d`.
"""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path

import click

from gpu_pruner import __version__
from gpu_pruner.act.intents import LONGEST_REASON
from gpu_pruner.cli import running
from gpu_pruner.cli.backtest import backtest
from gpu_pruner.cli.check import check
from gpu_pruner.cli.completing import complete
from gpu_pruner.cli.explain import explain
from gpu_pruner.cli.given import loaded_from_flags, settings_from_flags, tell_without_effect
from gpu_pruner.cli.migrate import migrate
from gpu_pruner.cli.notifying import notify
from gpu_pruner.cli.options import (
    controller_options,
    kubernetes_options,
    printing_options,
    serving_options,
)
from gpu_pruner.cli.printing import output_option
from gpu_pruner.cli.reasons import REASON
from gpu_pruner.cli.references import parse_reference
from gpu_pruner.cli.reloading import SettingsFile
from gpu_pruner.cli.report import report
from gpu_pruner.cli.rust_flags import log_level
from gpu_pruner.cli.settings_output import print_settings, schema
from gpu_pruner.cli.streams import replace_closed_streams
from gpu_pruner.cli.wishes import exempt, keep, release
from gpu_pruner.errors import ConfigurationError, PrunerError
from gpu_pruner.record.logs import configure_logging
from gpu_pruner.settings.schema import Settings

_NAME = "gpu-pruner"
_FAILED, _BAD_INPUT = 1, 2


def run_command_line() -> None:
    """Parse the arguments, run the command, and end with its exit code."""
    replace_closed_streams()
    try:
        code = command_line.main(_arguments(), prog_name=_NAME, standalone_mode=False)
        sys.stdout.flush()
        sys.exit(code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.Abort:
        sys.exit(130)
    except ConfigurationError as error:
        sys.stderr.write(f"gpu-pruner: {error}\n")
        sys.exit(_BAD_INPUT)
    except PrunerError as error:
        sys.stderr.write(f"gpu-pruner: {error}\n")
        sys.exit(_FAILED)
    except BrokenPipeError:
        # Whoever read the output has seen enough; python must not flush into the pipe again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(_FAILED)
    except OSError as error:
        sys.stderr.write(f"gpu-pruner: cannot write the result: {error.strerror}\n")
        sys.exit(_FAILED)


def _arguments() -> list[str]:
    """Return the arguments; the Rust tool's manifests begin them with the program's name."""
    arguments = sys.argv[1:]
    return arguments[1:] if arguments[:1] == [_NAME] else arguments


@click.group(
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="gpu-pruner")
@click.option("-d", "--daemon-mode", is_flag=True, help="Go on for ever, a cycle at a time.")
@controller_options
@serving_options
@printing_options
@output_option
@click.pass_context
def command_line(context: click.Context, /, **flags: object) -> None:
    """Find idle GPUs, warn their owners, and pause the workload reversibly.

    Without a command: one pass over the cluster, or for ever with -d. The default is a dry run.
    """
    if context.invoked_subcommand is not None:
        given = [name for name in flags if _was_given(context, name)]
        if given:
            flag = given[0].replace("_", "-")
            message = f"write --{flag} behind the command: gpu-pruner {context.invoked_subcommand}"
            raise click.UsageError(message)
        return
    if not any(_was_given(context, name) for name in flags) and not flags["config"]:
        message = "give --prometheus-url URL (or --exporter URL), or a command; see --help"
        raise click.UsageError(message)
    context.invoke(run if flags["daemon_mode"] else once, **_without(flags, context))


def _was_given(context: click.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is click.core.ParameterSource.COMMANDLINE


def _without(flags: dict[str, object], context: click.Context) -> dict[str, object]:
    command = run if flags["daemon_mode"] else once
    names = {parameter.name for parameter in command.params}
    unused = [
        name
        for name in flags
        if name not in names and name != "daemon_mode" and _was_given(context, name)
    ]
    if unused:
        flag = unused[0].replace("_", "-")
        raise click.UsageError(f"--{flag} does not go with {command.name}")
    return {name: value for name, value in flags.items() if name in names}


def _settings_to_use(flags: dict[str, object]) -> Settings:
    """Return the settings; print them and end where that was asked for."""
    loaded = loaded_from_flags(flags)
    if flags["print_settings"]:
        print_settings(loaded, output=str(flags["output"]))
        raise click.exceptions.Exit(0)
    tell_without_effect(flags)
    return loaded.settings


@command_line.command()
@controller_options
@serving_options
@printing_options
@output_option
def run(**flags: object) -> None:
    """Watch the cluster for ever: a cycle every minute, and the HTTP listener."""
    if flags["output"] != "table" and not flags["print_settings"]:
        raise click.UsageError("--output of run goes with --print-settings")
    configure_logging(str(flags["log_format"]), level=log_level(os.environ, logging.INFO))
    settings = _settings_to_use(flags)
    config = flags["config"]
    file = None
    if isinstance(config, Path):
        file = SettingsFile(file=config, flags=flags, settings=settings)
    complete(lambda: running.run(settings, file=file))


@command_line.command()
@controller_options
@printing_options
@output_option
def once(**flags: object) -> None:
    """Make one pass and print every workload that holds GPUs, with its verdict and why."""
    configure_logging(str(flags["log_format"]), level=logging.WARNING)
    settings = _settings_to_use(flags)
    complete(lambda: running.once(settings, output=str(flags["output"])))


command_line.add_command(check)
command_line.add_command(explain)
command_line.add_command(migrate)
command_line.add_command(notify)
command_line.add_command(schema)


@command_line.command()
@click.argument("reference", metavar="REF")
@click.option("--reason", type=REASON, default="", help="Why; everybody who wonders sees it.")
@kubernetes_options
def pause(reference: str, reason: str, **flags: object) -> None:
    """Pause one workload now, reversibly, by your own decision and without notice."""
    configure_logging(str(flags["log_format"]), level=logging.WARNING)
    settings = settings_from_flags(flags)
    root = parse_reference(reference, custom=settings.custom_levers)
    complete(lambda: running.pause(settings, root, reason=reason))


@command_line.command()
@click.argument("reference", metavar="REF")
@click.option(
    "--wrong",
    type=REASON,
    metavar="WHY",
    help="The pause was wrong, and why: it counts as a false positive, and the workload is exempt "
    "for 24 hours.",
)
@kubernetes_options
def resume(reference: str, wrong: str | None, **flags: object) -> None:
    """Give one paused workload back its exact former size."""
    if wrong == "":
        raise click.BadParameter(
            f"say why, in 1 to {LONGEST_REASON} characters", param_hint="--wrong"
        )
    configure_logging(str(flags["log_format"]), level=logging.WARNING)
    settings = settings_from_flags(flags)
    root = parse_reference(reference, custom=settings.custom_levers)
    complete(lambda: running.resume(settings, root, wrong=wrong or ""))


command_line.add_command(keep)
command_line.add_command(keep, "extend")
command_line.add_command(exempt)
command_line.add_command(release)
command_line.add_command(report)
command_line.add_command(backtest)


@command_line.command()
@click.option("--speed", type=float, default=30.0, show_default=True, help="Simulated time lapse.")
@click.option("--seed", type=click.IntRange(0), help="Draw other names, ids and noise.")
@click.option(
    "--world",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Play the world in this YAML file in place of the demo's own.",
)
@click.option("--print-world", is_flag=True, help="Print the demo's own world, and do nothing.")
@click.option(
    "--controller",
    hidden=True,
    default="",
    help="Command line to run in the controller's place (tests sabotage it).",
)
@click.option(
    "--patience",
    "patience_minutes",
    hidden=True,
    type=float,
    help="Simulated minutes after which the story has failed.",
)
def demo(
    *,
    speed: float,
    seed: int | None,
    world: Path | None,
    print_world: bool,
    controller: str,
    patience_minutes: float | None,
) -> None:
    """Show the whole story on a simulated cluster: an hour in two minutes, nothing needed."""
    from gpu_pruner.cli.demo import Staging, show  # noqa: PLC0415 - only the demo needs it
    from gpu_pruner.sim.story_file import first_story_text  # noqa: PLC0415 - as above

    if print_world:
        sys.stdout.write(first_story_text())
        return
    staging = Staging(
        speed=speed,
        seed=seed,
        world=world,
        controller=controller,
        patience_minutes=patience_minutes,
    )
    complete(lambda: show(staging))
