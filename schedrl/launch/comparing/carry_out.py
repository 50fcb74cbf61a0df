"""A comparison from its plan to its report: budget, training, evaluation, files, conclusion."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

from schedrl.evaluation import comparison_report
from schedrl.evaluation.cluster.sequences import is_cluster
from schedrl.evaluation.comparison_report import Failure, Result
from schedrl.launch.comparing import on_cluster, reuse, training
from schedrl.launch.comparing.budget import converted
from schedrl.launch.comparing.measuring import measure
from schedrl.launch.comparing.plan import ComparisonPlan
from schedrl.launch.comparing.watching import Watch
from schedrl.launch.interrupts import Interrupts
from schedrl.launch.plan import Plan
from schedrl.launch.speaker import Speaker
from schedrl.launch.workload import described
from schedrl.settings import UserError, counted, error_line
from schedrl.settings.claims import claim

FAILED = 1
STOPPED = "stopped before its end; the same command goes on"


def run(plan: ComparisonPlan) -> int:
    """Carry out the plan; return the exit code (1 where a run failed, whatever became of the others)."""
    say, facts = Speaker(), {}
    if plan.settings.num_episodes:
        say("converting episodes to decisions")
        plan, facts["Budget rule"] = converted(plan)
    runs = plan.runs()
    states = reuse.states(runs, plan.settings.retrain)
    announce(plan, runs, states, facts, say)
    if jobs := described(plan.environment):
        facts["Jobs"] = "; ".join(jobs)
    with Interrupts(say) as interrupts:
        failures = train(plan, runs, states, facts, interrupts, say)
        if interrupts.exit_code:
            again = " (without --retrain)" if plan.settings.retrain else ""
            say(f"stopped; what was trained is kept, and the same command{again} goes on")
            return interrupts.exit_code
    done = [own for own in runs if own.folder not in failures]
    if done and is_cluster(plan.environment):
        on_cluster.report_on(plan, done, tuple(failures.values()), facts, say)
    elif done:
        result = measure(plan, done, states, tuple(failures.values()), facts, say)
        write(result, plan.folder, say)
    for failure in failures.values():
        told = error_line(f"{failure.algorithm} seed {failure.seed} failed: {failure.error}")
        print(f"error: {told}", file=sys.stderr)
    return FAILED if failures else 0


def announce(
    plan: ComparisonPlan,
    runs: Sequence[Plan],
    states: Mapping[Path, reuse.State],
    facts: Mapping[str, str],
    say: Speaker,
) -> None:
    """Say what is going to happen."""
    seeds = ", ".join(map(str, plan.settings.training_seeds))
    say(f"{', '.join(plan.algorithms)} on {plan.settings.env}: {plan.environment.summary()}")
    for text in (*described(plan.environment), *facts.values()):
        say(text)
    found: list[str] = list(states.values())
    counts = {"finished": "finished already", "begun": "to be continued", "new": "to train"}
    parts = [f"{found.count(key)} {words}" for key, words in counts.items() if key in found]
    for text in reuse.told_of(own.folder for own in runs if states[_folder(own)] != "new"):
        say(text)
    say(
        f"budget {plan.budget:,} decisions per run; seeds {seeds}; "
        f"{counted(len(runs), 'run')}: {', '.join(parts)}"
    )


def train(
    plan: ComparisonPlan,
    runs: Sequence[Plan],
    states: Mapping[Path, reuse.State],
    facts: dict[str, str],
    interrupts: Interrupts,
    say: Speaker,
) -> dict[Path, Failure]:
    """Train what isn't finished and return folder -> failure."""
    from schedrl.learning.run_folder import clear

    missing = [own for own in runs if states[_folder(own)] != "finished"]
    if not missing:
        facts["Training"] = "no run was trained for this report; all were there"
        return {}
    jobs, rule = training.number_of_jobs(plan.settings.num_jobs, missing)
    at_a_time = f"{jobs if jobs > 0 else 'all'} at a time, {rule}"
    say(f"training in {plan.folder}, {at_a_time}; Ctrl-C saves")
    facts["Training"] = (
        f"{len(missing)} of {counted(len(runs), 'run')} were trained for this report, {at_a_time}"
    )
    if plan.settings.retrain:  # all at once: a call without --retrain can then go on where this one ends
        for own in missing:
            with claim(_folder(own)):
                clear(_folder(own))
    todo = [(own, states[_folder(own)] == "begun") for own in missing]
    results = training.train_all(todo, plan.folder, jobs, interrupts, Watch(say))
    return {
        # A run may be stopped by others than us, such as the scheduler of a cluster.
        _folder(own): Failure(own.launch.algo, own.launch.seed, result.get("error", STOPPED))
        for own, result in zip(missing, results, strict=True)
        if result["status"] != "finished"
    }


def write(result: Result, folder: Path, say: Speaker) -> None:
    """Write the report and print its conclusion."""
    say("comparing (bootstrap over sequences and seeds) and drawing")
    try:
        paths, conclusion = comparison_report.write(result, folder)
    except OSError as error:
        raise UserError(
            f"can't write the report to {folder}: {error.strerror}; free it and give the same command: it "
            "uses the trained runs again"
        ) from None
    print()
    for paragraph in conclusion:
        print(textwrap.fill(paragraph, 110, break_on_hyphens=False), end="\n\n")
    say("wrote " + ", ".join(map(str, paths)))


def _folder(own: Plan) -> Path:
    assert own.folder is not None
    return own.folder
