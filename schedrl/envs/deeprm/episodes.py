"""Play whole episodes with any policy on given job sequences, as one batch that shrinks as episodes end."""

from collections.abc import Callable
from typing import Any

import numpy as np

from schedrl.envs.draws import asking
from schedrl.sim.deeprm.outcome import Outcome
from schedrl.sim.deeprm.sequences import Sequences

from .clusters import Clusters
from .settings import DeepRMSettings


def play(
    policy: Any,
    settings: DeepRMSettings,
    sequences: Sequences,
    *,
    deterministic: bool = True,
    seed: int = 0,
    on_step: Callable[[Clusters], None] | None = None,
) -> Outcome:
    """Run one episode per sequence; nothing is learned and no global random state is touched.

    Args:
        policy: see `schedrl.policy`; observes by its own `representation`. One that takes `draws` samples by
            the number of the sequence and of the decision, so that what is played beside changes nothing.
        settings: physics, mask and idle limit.
        sequences: X job sequences, one episode each.
        deterministic: greedy, or sampled from the policy.
        seed: of the sampling.
        on_step: called after every decision of the batch, for recording.

    Returns:
        The outcome of the X episodes, in the order of the sequences.
    """
    settings = settings.as_played(getattr(policy, "representation", settings.representation))
    count = sequences.count
    clusters = Clusters(settings, count, sequences.arrival.shape[1], sequences.steps)
    clusters.load(clusters.everyone, clusters.everyone, sequences)
    ask, names, decision = asking(policy, deterministic, seed), sequences.names, 0
    actions = np.full(count, settings.num_job_slots)
    active = np.flatnonzero(clusters.ended == 0)
    while active.size:
        actions[active] = ask(clusters.observe(active), names[active], decision)
        decision += 1
        clusters.step(actions)
        if on_step:
            on_step(clusters)
        active = active[clusters.ended[active] == 0]
    return clusters.outcome()
