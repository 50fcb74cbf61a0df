"""Evaluate one trained model on unseen jobs: slowdown CDF, utilisation heat map, per-job table.

    python slow_down_cdf.py --model_dir models/ppo_deeprm

writes `slowdown_cdf.png`, `resource_utilization.png` and `job_completion_time.csv` to --output_dir (default:
the model's folder) and prints the comparison with the heuristics. Every arrived job counts; see
schedrl/evaluation. Settings of the environment (`--arrival_rate 0.38`, `--idle_limit none`) are laid over
those of the training run. `--steady_state` evaluates while arrivals never stop. Reads `policy.npz`, so
TensorFlow is not needed.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from schedrl import registry
from schedrl.settings import (
    Parser,
    UserError,
    add_arguments,
    check_folder_writable,
    main_guard,
    peek,
    resolve,
)

BASELINES = "sjf,packer,tetris,sjf_hold,tsl,defer"


def make_parser(env: str) -> Parser:
    """Return the parser of this command for one environment."""
    from schedrl.evaluation.steady_state import Windows

    parser = Parser(prog="slow_down_cdf.py", description="Evaluate one trained model on unseen jobs.")
    add = parser.add_argument
    switch: dict[str, Any] = {"nargs": "?", "const": True, "default": False, "type": _switch, "metavar": "X"}
    add("--model_dir", required=True, metavar="DIR", help="folder of the training run")
    add("--env", default="deeprm", help=f"one of: {', '.join(registry.names('environment'))}")
    add("--num_eval_episodes", type=_positive, default=100, metavar="N", help="job sequences to play")
    add("--output_dir", metavar="DIR", help="where the files go (default: the model's folder)")
    add("--seed", type=int, default=0, metavar="S", help="of jobs, sampled actions and intervals")
    add("--baselines", default=BASELINES, help=f"heuristics to compare with (default {BASELINES})")
    on = switch | {"default": True}
    add("--tune", help="search the heuristics' knobs on validation sequences [default True]", **on)
    add("--legacy_floor", help="report the original's slowdown, rounded down [default False]", **switch)
    add("--steady_state", help="evaluate in windows while arrivals never stop [default False]", **switch)
    add_arguments(parser, registry.get("environment_settings", env), Windows)
    return parser


@main_guard
def main(argv: list[str] | None = None) -> int:
    """Evaluate the model, write the files, print the tables."""
    env = registry.find("environment", peek(argv, env="deeprm").env)
    args = make_parser(env).parse_args(argv)
    baselines = [registry.find("heuristic", name) for name in args.baselines.split(",") if name.strip()]
    folder = check_folder_writable(args.output_dir or args.model_dir)

    from schedrl.learning.numpy_policy import load_policy

    policy, run = load_policy(args.model_dir)
    settings, windows = _settings(args, env, run)
    evaluation = _evaluate(args, {run.get("algo", "policy"): policy}, settings, baselines, windows)

    from schedrl.evaluation.report import write_report

    try:
        paths = write_report(evaluation, folder)
    except OSError as error:
        raise UserError(f"can't write to {folder}: {error.strerror}; choose another --output_dir") from None
    print("\nwrote " + ", ".join(map(str, paths)))
    return 0


def _settings(args: argparse.Namespace, env: str, run: dict[str, Any]):
    """Return the training run's settings of the environment with those of the command line over them."""
    from schedrl.evaluation.steady_state import Windows

    cls = registry.get("environment_settings", env)
    resolved = resolve([cls, Windows], args)
    trained_on = run.get("env", env)
    if trained_on != env:
        raise UserError(f"{args.model_dir} was trained on {trained_on}, not {env}; give --env {trained_on}")
    return cls.from_dict(run["settings"]["environment"]).replace(**resolved.changes(cls)), resolved[Windows]


def _evaluate(args: argparse.Namespace, policies: dict[str, Any], settings, baselines: list[str], windows):
    """Play the model and the baselines, with progress on stderr."""
    from schedrl.evaluation import evaluate, steady_state, tuned

    def progress(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    options: dict[str, Any] = {"seed": args.seed, "floor": args.legacy_floor, "progress": progress}
    if args.tune:
        progress("tuning the heuristics on validation sequences")
    if args.steady_state:
        options |= {"tune": args.tune, "baselines": [name for name in baselines if name != "defer"]}
        return steady_state(policies, settings, windows, **options)
    rules = tuned(baselines, settings, args.seed) if args.tune else baselines
    return evaluate(policies, settings, num_sequences=args.num_eval_episodes, baselines=rules, **options)


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {value}")
    return value


def _switch(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise argparse.ArgumentTypeError(f"must be True or False, got {text}")
    return text.lower() == "true"


if __name__ == "__main__":
    sys.exit(main())
