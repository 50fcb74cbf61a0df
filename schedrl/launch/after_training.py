"""After training: comparison with the tuned heuristics on unseen jobs, pictures, one plain sentence."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from schedrl.evaluation import Evaluation, evaluate, steady_state
from schedrl.evaluation.cluster.replay import Replay
from schedrl.evaluation.cluster.sequences import conclusion, is_cluster
from schedrl.evaluation.comparison import Comparison, few_line
from schedrl.evaluation.report import write_report
from schedrl.evaluation.steady_state import Windows
from schedrl.launch.plan import Plan
from schedrl.launch.yardsticks import SEED
from schedrl.settings import UserError

SEQUENCES_PER_WINDOW = 10  # a steady-state window costs as much as some ten episodes or more


def evaluate_and_draw(
    plan: Plan, policy: Any, heuristics: Mapping[str, Any], say: Callable[[str], None]
) -> Evaluation | Replay:
    """Play the policy, greedy and sampled, and the heuristics on test sequences; print, draw, conclude."""
    if is_cluster(plan.environment):
        return _on_cluster(plan, policy, heuristics, say)
    options: dict[str, Any] = {"baselines": heuristics, "seed": SEED, "progress": say}
    policies, count = {plan.launch.algo: policy}, plan.launch.num_eval_episodes
    if plan.environment.termination == "continuing":
        windows = Windows(num_windows=max(1, count // SEQUENCES_PER_WINDOW))
        evaluation = steady_state(policies, plan.environment, windows, **options)
    else:
        evaluation = evaluate(policies, plan.environment, num_sequences=count, **options)
    say("comparing (paired bootstrap) and drawing")
    assert plan.folder is not None
    try:
        paths = write_report(evaluation, plan.folder)
    except OSError as error:
        raise UserError(
            f"can't write the report to {plan.folder}: {error.strerror}; free it and run "
            f"python slow_down_cdf.py --model_dir {plan.folder}"
        ) from None
    print("\n" + verdict(evaluation, plan.launch.algo, policy.play) + "\n")
    say("wrote " + ", ".join(map(str, paths)))
    return evaluation


def _on_cluster(plan: Plan, policy: Any, rules: Mapping[str, Any], say: Callable[[str], None]) -> Replay:
    """Do the same on many machines."""
    from schedrl.launch.cluster_evaluation import evaluate_into, num_sequences

    assert plan.folder is not None
    algo, count = plan.launch.algo, num_sequences(plan.launch.num_eval_episodes)
    options: dict[str, Any] = {"count": count, "seed": SEED, "rules": rules, "say": say}
    replay, paths, _ = evaluate_into(plan.folder, {algo: policy}, plan.environment, **options)
    print("\n" + conclusion(replay, f"{algo} ({policy.play})") + "\n")
    say("wrote " + ", ".join(map(str, paths)))
    return replay


def verdict(evaluation: Evaluation, algo: str, play: str = "greedy") -> str:
    """Say in one sentence whom the policy, played so, beats, by how much, and whom not."""
    label = evaluation.run(algo, play).label
    mean = evaluation.summaries[label].mean
    if not math.isfinite(mean):
        return f"{label}: {few_line(0, evaluation.summaries[label].episodes)}."
    pairs = [c for c in evaluation.comparisons if c.policy == label]
    parts = []
    for words, wanted in SENTENCES:
        found = [c for c in pairs if c.verdict == wanted]
        if found:
            parts.append(f"{words} " + ", ".join(map(_by_how_much, found)))
    mean_of = {c.baseline: evaluation.summaries[c.baseline].mean for c in pairs}
    for words, wanted in UNJUDGED:
        names = [f"{c.baseline} {_two_digits(mean_of[c.baseline])}" for c in pairs if c.verdict == wanted]
        if names:
            parts.append(f"{words}: {', '.join(names)}")
    if not pairs:
        parts = ["it was alone"]
    return f"{label} has a mean slowdown of {mean:.2f}: " + "; ".join(parts) + "."


def _two_digits(mean: float) -> str:
    return f"{mean:.2f}" if math.isfinite(mean) else "-"


SENTENCES = (
    ("it beats", "better"),
    ("it looks better, but left jobs undone, than", "better (bound)"),
    ("it ties with", "tie"),
    ("it loses to", "worse"),
    ("it looks worse than these, which left jobs undone:", "worse (bound)"),
)
UNJUDGED = (
    ("other idling rules allow no claim against", "other idle limit"),
    ("too few sequences for a verdict on", "too few sequences"),
)


def _by_how_much(c: Comparison) -> str:
    assert c.relative_interval is not None
    low, high = sorted((abs(c.relative_interval.low), abs(c.relative_interval.high)))
    if c.verdict == "tie":
        return f"{c.baseline} [{c.relative_interval.low:+.1%} .. {c.relative_interval.high:+.1%}]"
    return f"{c.baseline} by {abs(c.relative):.1%} [{low:.1%} .. {high:.1%}]"


def render_episode(plan: Plan, policy: Any) -> None:
    """Print the first test episode, played greedily, one picture for each time step."""
    from schedrl import registry

    env = registry.get("environment", plan.launch.env)(
        plan.environment.as_played(policy.representation), family="test", render_mode="ansi"
    )
    obs, _ = env.reset(seed=SEED)
    over, time = False, -1
    while not over:
        obs, _, terminated, truncated, info = env.step(policy.predict(obs))
        over = terminated or truncated
        if info["time"] != time:
            time = info["time"]
            print(env.render(), flush=True)
