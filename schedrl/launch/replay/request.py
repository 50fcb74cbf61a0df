"""From a command line to a replay; reads nothing but the command line."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from schedrl.launch.replay.settings import ReplaySettings
from schedrl.settings import Parser, UserError, add_arguments, check_folder_writable, peek, resolve


@dataclass(frozen=True)
class Request:
    """A replay, decided."""

    settings: ReplaySettings
    reading: argparse.Namespace
    """How the trace is read, as `schedrl.workload.command.reading.read_given` takes it."""
    rules: tuple[str, ...]
    """Policies in the order asked for: full names of rules, or folders of models."""
    models: frozenset[str]
    """Those that are folders of models."""
    folder: Path
    command: str
    """The command line, to be typed again."""
    numbered: bool = False
    """Whether the folder is the default one, and may get a number."""


def is_replay(argv: Iterable[str] | None) -> bool:
    """Say whether a command line of compare_algorithms.py asks for a replay, not for training."""
    asked = peek(argv, policies="", cluster="", env="", algorithms="")
    return bool(asked.policies or (asked.cluster and not asked.env and not asked.algorithms))


def read_request(argv: Iterable[str] | None) -> Request:
    """Turn a command line into a request.

    Raises:
        UserError: whatever is unknown, out of range or contradictory.
    """
    argv = sys.argv[1:] if argv is None else list(argv)
    for flag in ("--env", "--algorithms"):
        if any(argument.partition("=")[0] == flag for argument in argv):
            raise UserError(
                f"{flag} is for training; a replay (--policies) takes rules and trained models only"
            )
    args = make_parser().parse_args(argv)
    resolved = resolve([ReplaySettings], args)
    settings = resolved[ReplaySettings]
    if not settings.trace:
        raise UserError("a replay needs --trace FILE, the jobs; job_distribution.py generate makes some")
    args.file = settings.trace
    found = [_policy(name) for name in settings.policies]
    return Request(
        settings,
        args,
        tuple(dict.fromkeys(name for name, _ in found)),
        frozenset(name for name, learned in found if learned),
        check_folder_writable(settings.output_dir),
        shlex.join(["python", "compare_algorithms.py", *argv]),
        "output_dir" not in resolved.given[ReplaySettings],
    )


def make_parser() -> Parser:
    """Return the parser of a replay."""
    from schedrl.workload.command.reading import add_reading

    parser = Parser(
        prog="compare_algorithms.py",
        description="Replay a trace on a cluster under many policies: table, intervals, heat map, report. "
        "Heuristics need no TensorFlow.",
    )
    add_arguments(parser, ReplaySettings, presets={})
    add_reading(parser)
    return parser


def _policy(name: str) -> tuple[str, bool]:
    """Return our name of a policy, and whether it is a folder of a trained model."""
    from schedrl.sim.cluster.rule import parse  # late: it needs Numba

    if "/" in name or Path(name).is_dir():
        if not (Path(name) / "policy.npz").is_file():
            raise UserError(
                f"{name} holds no trained model (policy.npz); train one with launcher.py, or name a rule "
                "such as sjf+best_fit+easy"
            )
        return str(Path(name)), True
    return parse(name).name, False
