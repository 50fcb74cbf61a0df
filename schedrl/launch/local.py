"""`--mode local`: trains on this machine, shows its progress, saves, and then evaluates."""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from schedrl import registry
from schedrl.launch.after_training import evaluate_and_draw, render_episode
from schedrl.launch.failures import explained
from schedrl.launch.interrupts import Interrupts
from schedrl.launch.plan import Plan
from schedrl.launch.profiling import Profiler
from schedrl.launch.progress import Progress, make_progress
from schedrl.launch.reward_terms import reward_lines
from schedrl.launch.validation import selection_of
from schedrl.launch.workers import split
from schedrl.launch.workload import described
from schedrl.launch.yardsticks import Yardsticks
from schedrl.learning.action_spec import ActionSpec
from schedrl.learning.budget import Budget
from schedrl.learning.checkpoint import atomic_write
from schedrl.learning.rollout import NumericsError
from schedrl.learning.run_folder import Run, clear, newest_checkpoint
from schedrl.settings import UserError, error_line

AFTERWARDS = ("no_eval", "render", "num_eval_episodes")
"""Settings of the launcher that say what happens when the training is over."""
MAY_BE_UNKNOWN = ("episode_return", "slowdown", "episode_length", "explained_variance")
"""Metrics that are NaN where no episode has ended, or all returns are equal."""


def run(plan: Plan) -> int:
    """Carry out the plan; return the exit code."""
    budget = Budget.of(plan.algorithm)
    progress = make_progress(budget)
    yardsticks = None
    announce(plan, progress)
    with Interrupts(progress.say) as interrupts:
        try:
            yardsticks = None if plan.launch.no_eval else Yardsticks(plan.launch.env, plan.environment)
            trained = train(plan, budget, progress, interrupts, yardsticks)
            progress.close()
            interrupts.on_stop = None
            if interrupts.exit_code:
                progress.say(f"saved after {budget.decisions:,} decisions; to go on: {resume_command(plan)}")
                return interrupts.exit_code
            progress.say(f"trained {budget.decisions:,} decisions in {trained.seconds:.0f} s")
            policy = trained.model.policy()
            policy.play, policy.scales = trained.play, trained.scales
            conclude(plan, policy, yardsticks, progress)
            return 0
        except Exception as error:
            told = explained(error, plan.folder, resume_command(plan))
            if told is None:
                raise
            progress.close()
            print(f"error: {error_line(told)}", file=sys.stderr)
            return 1
        finally:
            progress.close()
            if yardsticks is not None:
                yardsticks.close()


def conclude(plan: Plan, policy: Any, yardsticks: Yardsticks | None, progress: Progress) -> None:
    """Evaluate, draw and render what was asked for; the model is saved by now."""
    if plan.claim is not None:
        plan.claim.require()
    try:
        if yardsticks is not None:
            if not yardsticks.means():
                progress.say("waiting for the heuristics' tuning to end")
            evaluate_and_draw(plan, policy, yardsticks.heuristics(), progress.say)
        if plan.launch.render:
            render_episode(plan, policy)
    except KeyboardInterrupt:
        folder = shlex.quote(str(plan.folder))
        progress.say(f"the model is saved; to evaluate it: python slow_down_cdf.py --model_dir {folder}")
        raise
    if plan.claim is not None:
        plan.claim.require()
    progress.say(f"done; the run is in {plan.folder}")


def announce(plan: Plan, progress: Progress) -> None:
    """Say what is going to happen, before anything slow is imported."""
    for note in plan.notes:
        progress.say(note)
    limits = [
        f"{limit:,} {unit}"
        for limit, unit in (
            (plan.algorithm.total_steps, "decisions"),
            (plan.algorithm.num_episodes, "episodes"),
        )
        if limit is not None
    ]
    progress.say(f"{plan.launch.algo} on {plan.launch.env}: {plan.environment.summary()}")
    for line in described(plan.environment):
        progress.say(line)
    verb = "continuing up to" if plan.launch.resume else "budget"
    where = f"folder {plan.folder}" if plan.folder else "nothing is kept on disk"
    progress.say(f"{verb} {' or '.join(limits)}; seed {plan.launch.seed}; {where}")


def train(
    plan: Plan,
    budget: Budget,
    progress: Progress,
    interrupts: Interrupts,
    yardsticks: Yardsticks | None,
) -> Run:
    """Train to the end of the budget or to a signal; return the run with its model."""
    from schedrl.learning.tf_setup import tensorflow

    progress.say("loading TensorFlow")
    tensorflow(seed=plan.launch.seed, memory_growth=plan.launch.memory_growth)
    progress.say("preparing the simulator (compiles where that wasn't done before)")
    env = make_env(plan)
    profiler = Profiler(Path(plan.folder) / "profile") if plan.launch.profile and plan.folder else None
    progress.say("learning; the first update includes tracing its graph (about 5 s)")
    with undone_if_refused(plan.folder), closing(env):
        run = open_run(plan, budget, progress.say)
        interrupts.on_stop = run.request_stop
        for record in registry.get("algorithm", plan.launch.algo)(env, plan.algorithm, run):
            require_learning(record)
            if not progress.updates:
                for line in reward_lines(env):
                    progress.say(line)
            progress.update(record, yardsticks.means() if yardsticks is not None else {})
            if profiler is not None:
                profiler.update_done()
    if not progress.updates and budget.done:
        progress.say("the budget was spent already; a larger --total_steps or --num_episodes trains on")
    if profiler is not None:
        progress.say(profiler.close())
    return run


def make_env(plan: Plan) -> Any:
    """Make the batched environment and step it once, so that compiling happens here."""
    env = registry.get("vector_environment", plan.launch.env)(
        plan.environment, plan.algorithm.num_envs, seed=plan.launch.seed, copy=False
    )
    obs, _ = env.reset(seed=plan.launch.seed)
    actions = ActionSpec.of(env.single_action_space)
    env.step(actions.decode(actions.forced(obs)))
    return split(env, plan.launch, plan.algorithm)  # now that workers find compiled code in the cache


def open_run(plan: Plan, budget: Budget, say: Callable[[str], None] | None = None) -> Run:
    """Open the run's folder."""
    fresh = not plan.launch.resume
    return Run(
        budget,
        plan.launch.seed,
        plan.folder,
        settings=plan.recorded,
        resume=plan.launch.resume,
        say=say,
        checkpoint_every=plan.launch.checkpoint_every,
        accept_changes=plan.launch.accept_changes,
        selection=selection_of(plan, say or (lambda text: None)),
        # Nothing that could be resumed is there (`plan` has looked): at most what a killed start left.
        overwrite=fresh and plan.folder is not None and (plan.folder / "run.json").exists(),
    )


@contextmanager
def undone_if_refused(folder: Path | None) -> Iterator[None]:
    """Where the algorithm itself refuses the settings (a UserError), leave the disk as it was."""
    if folder is None:
        yield
        return
    description = folder / "run.json"
    before = description.read_bytes() if description.exists() else b""
    new = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        yield
    except UserError:
        if newest_checkpoint(folder) is not None:
            _put_back(description, before)
        else:
            clear(folder)
            for path in new:
                if path.is_dir() and not any(path.iterdir()):
                    path.rmdir()
        raise


def _put_back(description: Path, before: bytes) -> None:
    if not description.exists() or description.read_bytes() != before:  # a full disk may have no room
        with atomic_write(description) as file:
            file.write(before)


def require_learning(record: Mapping[str, float]) -> None:
    """Stop a run whose metrics are no numbers any more: nothing better can come of it.

    Raises:
        NumericsError: it names the metric and how to find the tensor.
    """
    for name, value in record.items():
        if name not in MAY_BE_UNKNOWN and not math.isfinite(value):
            raise NumericsError(
                f"{name} is {value} after {record['decisions']:.0f} decisions; --check_numerics True names "
                "the first such tensor, a lower --learning_rate often helps"
            )


def resume_command(plan: Plan) -> str:
    """Return the command that continues this run and then does what this one would have done."""
    launch = plan.launch
    parts = [
        "python launcher.py",
        "--algo",
        launch.algo,
        "--model_dir",
        shlex.quote(str(plan.folder)),
        "--resume",
    ]
    # run.json keeps how to train; what follows the training stands on the command line alone.
    for name in AFTERWARDS:
        if getattr(launch, name) != type(launch).defaults()[name]:
            parts += [f"--{name}", str(getattr(launch, name))]
    if (launch.num_workers or 1) > 1:
        parts += ["--num_workers", str(launch.num_workers)]
    return " ".join(parts)
