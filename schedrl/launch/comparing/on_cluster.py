"""Measuring trained runs on the cluster environment, and the report on them."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from schedrl.evaluation.cluster import holding, report, sequences
from schedrl.evaluation.comparison_report import Failure
from schedrl.evaluation.comparison_report.pdf import write_pdf
from schedrl.evaluation.comparison_report.result import run_name
from schedrl.launch.cluster_evaluation import evaluate_into, num_sequences
from schedrl.launch.comparing.measuring import machine
from schedrl.launch.comparing.plan import ComparisonPlan
from schedrl.launch.plan import Plan
from schedrl.launch.yardsticks import SEED
from schedrl.learning.numpy_policy import load_policy
from schedrl.settings import UserError

STEM = "comparison_report"


def report_on(
    plan: ComparisonPlan,
    runs: Sequence[Plan],
    failures: Sequence[Failure],
    facts: Mapping[str, str],
    say: Callable[[str], None],
) -> None:
    """Play every run's policy, greedy and sampled, and the rules; write the report, print the conclusion."""
    policies = {run_name(run.launch.algo, run.launch.seed): load_policy(_folder(run))[0] for run in runs}
    count = num_sequences(plan.settings.num_eval_episodes)
    if any(map(holding.holds, plan.baselines)):
        say("tuning the hold rule on validation sequences")
    rules = holding.tuned(plan.baselines, plan.environment, SEED)
    try:
        replay, paths, small = evaluate_into(
            plan.folder, policies, plan.environment, count=count, seed=SEED, rules=rules, say=say, draw=False
        )
        sentences = [sequences.conclusion(replay, f"{name} ({p.play})") for name, p in policies.items()]
        lines = [*sentences, *_facts(plan, facts, count), *_failed(failures)]
        title = f"Comparison of {', '.join(plan.algorithms)} on {plan.settings.env}"
        origin = report.Origin(title, lines, "s")
        paths += report.write(replay, plan.folder, origin, small, STEM)
        blocks = report.blocks_of(replay, origin, small)
        write_pdf(plan.folder / f"{STEM}.pdf", title, blocks)
    except OSError as error:
        raise UserError(f"can't write the report to {plan.folder}: {error.strerror}; free it") from None
    print()
    for sentence in sentences:
        print(textwrap.fill(sentence, 110, break_on_hyphens=False), end="\n\n")
    say("wrote " + ", ".join(map(str, [plan.folder / f"{STEM}.pdf", *paths])))


def _facts(plan: ComparisonPlan, facts: Mapping[str, str], count: int) -> list[str]:
    told = {
        "Environment": plan.environment.summary(),
        "Budget": f"{plan.budget:,} decisions for each run",
        "Test sequences": f"{count:,} of {plan.environment.num_jobs:,} jobs",
        **facts,
        "Command": plan.command,
        **machine(),
    }
    return [f"{name}: {text}" for name, text in told.items()]


def _failed(failures: Sequence[Failure]) -> list[str]:
    return [f"{f.algorithm} seed {f.seed} failed and is not in this report: {f.error}" for f in failures]


def _folder(run: Plan) -> Path:
    assert run.folder is not None
    return run.folder
