"""The command line: ``troth COMMAND``.

Every command lives in a module of its own and is imported when it is called, so that ``troth --help`` loads no array library. To
add one, write a click command in ``troth.cli.NAME`` and list it in ``COMMANDS``, with the line that the help shows for it.

Exit codes are the same for all: 0 holds or success, 1 violated or failed, 2 usage, 3 unknown or error, 130 interrupted.
An unexpected error is one line like any other; with ``TROTH_TRACEBACK=1`` in the environment it is shown whole.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib import import_module
from typing import NoReturn

import click

import troth

EXIT_USAGE = 2
EXIT_ERROR = 3
EXIT_INTERRUPTED = 130

COMMANDS: Mapping[str, tuple[str, str]] = {
    "check": ("troth.cli.check:check", "Model-check worlds: built in, or of your own."),
    "export": ("troth.cli.export:export", "Write a generated artefact: diagrams of the machines, worlds as TLA+."),
    "fuzz": ("troth.cli.fuzz:fuzz", "Run worlds, parties and the runtime at random, comparing everything after every step."),
    "run": ("troth.cli.running:run", "Run a job with real trainer processes; without a job, the built-in one."),
    "trace": ("troth.cli.tracing:trace", "Check recorded runs, all parties together, and draw them."),
    "worlds": ("troth.cli.worlds:worlds", "List the worlds there are, with bounds, parties and properties."),
}
"""Command to (``module:attribute``, the help's line)."""


class LazyGroup(click.Group):
    """A group whose commands are imported when they are needed."""

    def __init__(self, name: str, lazy: Mapping[str, tuple[str, str]], help_text: str) -> None:
        """``lazy`` maps a command's name to where it is and to the line that the help shows."""
        super().__init__(name, help=help_text, no_args_is_help=False, context_settings={"help_option_names": ["-h", "--help"]})
        self.lazy = lazy

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every command, loaded or not."""
        return sorted({*super().list_commands(ctx), *self.lazy})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, imported now."""
        if cmd_name not in self.lazy:
            return super().get_command(ctx, cmd_name)
        module, _, attribute = self.lazy[cmd_name][0].partition(":")
        command = getattr(import_module(module), attribute)
        if not isinstance(command, click.Command):
            raise TypeError(f"{self.lazy[cmd_name][0]} is not a click command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list in ``--help``, without importing what it lists."""
        rows = [(name, self.lazy[name][1] if name in self.lazy else self._loaded_help(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def _loaded_help(self, ctx: click.Context, name: str) -> str:
        command = super().get_command(ctx, name)
        return command.get_short_help_str() if command else ""


cli = LazyGroup("troth", COMMANDS, "A verified session runtime, its model checker, and the generator of its tests.")
click.version_option(troth.__version__, prog_name="troth")(cli)


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line and exit with one of the codes above; an error is one line on stderr."""
    sys.exit(run(arguments))


def run(arguments: list[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    try:
        result = cli.main(args=arguments, prog_name="troth", standalone_mode=False)
    except (click.Abort, KeyboardInterrupt):
        return _fail("interrupted", EXIT_INTERRUPTED)
    except click.UsageError as error:
        return _fail(error.format_message(), EXIT_USAGE)
    except click.ClickException as error:
        return _fail(error.format_message(), EXIT_ERROR)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # whoever read has gone; the exit must not fail over it again
        return EXIT_ERROR
    except Exception as error:  # whatever it is, the exit code must say "error" and never "violated"
        if os.environ.get("TROTH_TRACEBACK"):
            raise
        return _fail(f"{type(error).__name__}: {error}", EXIT_ERROR)
    return result if isinstance(result, int) else 0


def _fail(reason: str, code: int) -> int:
    click.echo(f"troth: {' '.join(reason.split())}", err=True)
    return code
