"""Evaluate one trained model on unseen jobs: slowdown CDF, utilisation heat map, per-job table.

    python slow_down_cdf.py --model_dir models/ppo_deeprm

writes `slowdown_cdf.png`, `resource_utilization.png` and `job_completion_time.csv` to --output_dir and prints
the comparison with the heuristics. Without --output_dir they go to the model's folder or, where a report is
there already (training ends with one), to a new folder `eval`, `eval_2`, ... in it. Every arrived job counts;
see schedrl/evaluation. Settings of the environment (`--arrival_rate 0.38`, `--idle_limit none`) are laid over
those of the training run; so are another workload (`--workload bursty --load 0.9`) or a trace
(`--trace FILE`). `--steady_state`, or termination `continuing`, evaluates in windows while arrivals never
stop. A model of simple_cluster is compared with rules (`--baselines sjf+best_fit+easy,...`), and there are a
Gantt chart and `evaluation.json` too. Reads `policy.npz`, so TensorFlow is not needed.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from pathlib import Path
from typing import Any

from schedrl import registry
from schedrl.envs.simple_cluster.scales import settle
from schedrl.launch.workload import (
    add_workload_arguments,
    data_of,
    described,
    filled,
    guest_of,
)
from schedrl.learning.run_description import named_in, told_of_code
from schedrl.settings import (
    Guest,
    Parser,
    UserError,
    add_arguments,
    check_folder_writable,
    claims,
    main_guard,
    peek,
    resolve,
    whole_number,
)

BASELINES = "sjf,packer,tetris,sjf_hold,tsl,defer"
EPISODES = 100


def make_parser(env: str, guest: Guest | None = None) -> Parser:
    """Return the parser of this command for one environment and one workload."""
    from schedrl.evaluation.steady_state import Windows

    parser = Parser(prog="slow_down_cdf.py", description="Evaluate one trained model on unseen jobs.")
    add = parser.add_argument
    switch: dict[str, Any] = {"nargs": "?", "const": True, "default": False, "type": _switch, "metavar": "X"}
    add("--model_dir", required=True, metavar="DIR", help="folder of the training run")
    add("--env", default=env, help=f"one of: {', '.join(registry.names('environment'))} (default: the run's)")
    count, seed = whole_number(1), whole_number(0)
    add("--num_eval_episodes", type=count, metavar="N", help=f"job sequences to play (default {EPISODES})")
    where = "the model's folder, or a new folder eval, eval_2, ... in it where a report is there already"
    add("--output_dir", metavar="DIR", help=f"where the files go (default: {where})")
    add("--seed", type=seed, default=0, metavar="S", help="of jobs, sampled actions and intervals")
    add("--baselines", default=BASELINES, help=f"heuristics to compare with (default {BASELINES})")
    on = switch | {"default": True}
    add("--tune", help="search the heuristics' knobs on validation sequences [default True]", **on)
    add("--legacy_floor", help="report the original's slowdown, rounded down [default False]", **switch)
    add("--steady_state", help="evaluate in windows while arrivals never stop [default False]", **switch)
    add_workload_arguments(parser, guest)
    add_arguments(parser, registry.get("environment_settings", env), Windows)
    return parser


@main_guard
def main(argv: list[str] | None = None) -> int:
    """Evaluate the model, write the files, print the tables."""
    first = peek(argv, env="", model_dir="")
    env = registry.find("environment", first.env or named_in(first.model_dir).get("env", "deeprm"))
    guest = _guest(argv, env, first.model_dir)
    args = make_parser(env, guest).parse_args(argv)
    on_cluster = env == "simple_cluster"
    baselines = [] if on_cluster else _names(args.baselines)
    check_folder_writable(args.output_dir or args.model_dir)

    from schedrl.evaluation.cluster.sequences import is_cluster
    from schedrl.learning.numpy_policy import load_policy

    policy, run = load_policy(args.model_dir)
    settings, windows = _settings(args, env, run, policy, guest)
    for line in (*told_of_code(run), *described(settings)):
        print(line, flush=True)
    algo = run.get("algo", "policy")
    with _claimed_folder(args) as claim:
        if is_cluster(settings):
            return _on_cluster(args, algo, policy, settings, claim.place)
        evaluation = _evaluate(args, {algo: policy}, settings, baselines, windows)

        from schedrl.evaluation.report import write_report

        try:
            paths = write_report(evaluation, claim.place)
        except OSError as error:
            raise UserError(
                f"can't write to {claim.place}: {error.strerror}; choose another --output_dir"
            ) from None
        print("\nwrote " + ", ".join(map(str, paths)))
    return 0


def _on_cluster(args: argparse.Namespace, algo: str, policy: Any, settings: Any, folder: Path) -> int:
    """Do the same on many machines, against rules such as sjf+best_fit+easy."""
    from schedrl.evaluation.cluster import holding, sequences
    from schedrl.launch.cluster_evaluation import evaluate_into

    asked = [name for name in args.baselines.split(",") if name.strip()]
    names = sequences.standard_rules() if args.baselines == BASELINES else sequences.known_rules(asked)
    rules: dict[str, Any] = {name: {} for name in names}
    if args.tune and any(map(holding.holds, names)):
        print("tuning the hold rule on validation sequences", file=sys.stderr, flush=True)
        rules = holding.tuned(names, settings, args.seed)
    try:
        replay, paths, _ = evaluate_into(
            folder,
            {algo: policy},
            settings,
            count=args.num_eval_episodes or EPISODES,
            seed=args.seed,
            rules=rules,
            say=lambda line: print(line, file=sys.stderr, flush=True),
        )
    except OSError as error:
        raise UserError(f"can't write to {folder}: {error.strerror}; choose another --output_dir") from None
    print("\n" + sequences.conclusion(replay, f"{algo} ({policy.play})"))
    print("\nwrote " + ", ".join(map(str, paths)))
    return 0


def _claimed_folder(args: argparse.Namespace) -> claims.Claim:
    """Claim --output_dir; without it the model's folder or, where it holds a report, the next free one in it.

    Raises:
        UserError: --output_dir is in use, or can't be written.
    """
    from schedrl.evaluation.report import FILES

    if args.output_dir:
        claim = claims.claim(Path(args.output_dir).expanduser())
        notes = []
    else:
        model = Path(args.model_dir)
        candidates = itertools.chain([model], claims.series(model / "eval"))
        claim, notes = claims.claim_first(
            candidates, lambda at: not any((at / name).exists() for name in FILES)
        )
    for note in filter(None, [*notes, claim.note]):
        print(note, file=sys.stderr, flush=True)
    return claim


def _guest(argv: list[str] | None, env: str, model_dir: str) -> Guest | None:
    """Return the settings of the workload that is asked for, or that the model was trained on."""
    from schedrl.evaluation.steady_state import Windows

    return guest_of(argv, registry.get("environment_settings", env), [Windows], model_dir)


def _settings(args: argparse.Namespace, env: str, run: dict[str, Any], policy: Any, guest: Guest | None):
    """Return the run's settings with those of the command line over them, and the windows of steady state."""
    from schedrl.evaluation.steady_state import Windows, continuing

    cls = registry.get("environment_settings", env)
    resolved = resolve([cls, Windows], args, guest=guest)
    trained_on = run.get("env", env)
    if trained_on != env:
        raise UserError(f"{args.model_dir} was trained on {trained_on}, not {env}; give --env {trained_on}")
    try:
        trained = cls.from_dict(run["settings"]["environment"])
    except (UserError, KeyError) as error:
        raise UserError(
            f"the settings in {Path(args.model_dir) / 'run.json'} can't be used: {error}"
        ) from None
    if assumed := settle(policy, trained):
        print(assumed, flush=True)
    given = filled(trained, resolved.changes(cls))
    settings = trained.replace(**given)
    _refuse_changed_data(settings, run)
    from schedrl.evaluation.cluster.sequences import is_cluster

    if is_cluster(settings) and (args.steady_state or args.legacy_floor):
        raise UserError("--steady_state and --legacy_floor are for deeprm; use --termination continuing")
    steady = args.steady_state or (settings.termination == "continuing" and not is_cluster(settings))
    _refuse_without_effect(args, resolved.given[cls], set(resolved.given[Windows]) - set(cls.kinds()), steady)
    windows = resolved[Windows] if steady else None
    settings = continuing(settings, windows) if windows else settings
    changes = [name for name, value in given.items() if value != getattr(trained, name)]
    _check_shapes(env, settings, policy, changes, windows)
    return settings, windows


def _refuse_changed_data(settings: Any, run: dict[str, Any]) -> None:
    """Raise `UserError` if a trace is no longer what the model was trained on."""
    trained_on = run["settings"].get("data", {})
    for path, found in data_of(settings).items():
        if trained_on.get(path, found) != found:
            raise UserError(
                f"{path} has changed since the model was trained on it; give the former file, or train anew"
            )


def _refuse_without_effect(args: argparse.Namespace, given: Any, of_windows: set[str], steady: bool) -> None:
    """Raise `UserError` if a flag was given that this evaluation wouldn't look at."""
    typed = {name for name, source in given.items() if not source.startswith("preset ")}
    if "representation" in typed:
        raise UserError("--representation has no effect: the model decides what it reads; leave it out")
    if "privileged" in typed:
        raise UserError("--privileged has no effect: nobody is shown it in an evaluation; leave it out")
    if not steady and of_windows:
        raise UserError(f"--{min(of_windows)} has an effect in steady state only; add --steady_state")
    if not steady:
        return
    if args.num_eval_episodes is not None:
        raise UserError("--num_eval_episodes has no effect in steady state; use --num_windows")
    for name in sorted(typed & {"sequence_length", "episode_max_length"}):
        raise UserError(f"--{name} has no effect in steady state; use --steps")
    if args.baselines != BASELINES and "defer" in _names(args.baselines):
        raise UserError(
            "--baselines defer waits for arrivals to end: in steady state they don't; leave it out"
        )


def _check_shapes(env: str, settings: Any, policy: Any, changes: list[str], windows: Any) -> None:
    """Raise `UserError` unless the model reads and decides what the environment shows and asks."""
    asked = registry.get("environment", env)(settings.as_played(policy.representation))
    shapes = {name: space.shape for name, space in asked.observation_space.items() if name in policy.acts_on}
    trained = policy.shapes_on(shapes)
    choices = trained.pop("action_mask", None)
    if hasattr(asked.action_space, "n"):
        shapes["actions"], trained["actions"] = (int(asked.action_space.n),), choices
    for name, shape in trained.items():
        if shapes.get(name) != shape:
            given = ", ".join(f"--{change}" for change in changes)
            raise UserError(
                f"the model was trained with {name} {list(shape)}, asked for {list(shapes.get(name, ()))}; "
                + (f"leave out what changes it (given: {given})" if given else _without_given(windows))
            )


def _without_given(windows: Any) -> str:
    """Say why shapes differ though no setting was given that differs."""
    if windows:  # an image has columns for the backlog
        return f"windows have backlog_size {windows.backlog_size}; give the run's own --backlog_size"
    return "policy.npz is not of the run in run.json"


def _evaluate(args: argparse.Namespace, policies: dict[str, Any], settings, baselines: list[str], windows):
    """Play the model and the baselines, with progress on stderr."""
    from schedrl.evaluation import evaluate, steady_state, tuned

    def progress(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    options: dict[str, Any] = {"seed": args.seed, "floor": args.legacy_floor, "progress": progress}
    if args.tune:
        progress("tuning the heuristics on validation sequences")
    if windows:
        options |= {"tune": args.tune, "baselines": [name for name in baselines if name != "defer"]}
        return steady_state(policies, settings, windows, **options)
    rules = tuned(baselines, settings, args.seed) if args.tune else baselines
    count = args.num_eval_episodes or EPISODES
    return evaluate(policies, settings, num_sequences=count, baselines=rules, **options)


def _names(baselines: str) -> list[str]:
    """Return the registered names in a list with commas."""
    return [registry.find("heuristic", name) for name in baselines.split(",") if name.strip()]


def _switch(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise argparse.ArgumentTypeError(f"must be True or False, got {text}")
    return text.lower() == "true"


if __name__ == "__main__":
    sys.exit(main())
