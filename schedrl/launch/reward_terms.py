"""What the reward turned out to be made of, said once after the first update.

Terms are meant to be of comparable size (docs/simple_cluster.md, "Rewards"); where one drowns the others, a
policy learns that one alone, whatever the weights were chosen for.
"""

from typing import Any

DROWNS = 0.9
"""Share of the sum of sizes from which one of several terms is warned of."""


def reward_lines(env: Any) -> list[str]:
    """Return the mean of each term per decision and its share, and a warning where one drowns the others.

    Nothing for an environment that doesn't keep them, or whose reward has one term.
    """
    kept: dict[str, float] = getattr(env.unwrapped, "mean_reward_terms", dict)()
    means = {name: value for name, value in kept.items() if value}
    total = sum(map(abs, means.values()))
    if not total:
        return []
    shares = {name: abs(value) / total for name, value in means.items()}
    parts = [f"{name} {value:.3g} ({shares[name]:.0%})" for name, value in means.items()]
    lines = ["reward per decision so far: " + ", ".join(parts)]
    largest = max(shares, key=lambda name: shares[name])
    if len(shares) > 1 and shares[largest] > DROWNS:
        lines.append(
            f"warning: {largest} makes up {shares[largest]:.0%} of the reward and drowns the other terms; "
            "lower its weight, or leave the others out"
        )
    return lines
