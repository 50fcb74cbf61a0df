"""Policies with random weights for an environment, without TensorFlow."""

import numpy as np

from schedrl.learning import networks
from schedrl.learning.action_spec import ActionSpec
from schedrl.learning.numpy_policy import make_policy


def random_policy(env, network, seed=0, gaussian=False, scale=0.3):
    """Return a policy that reads what `env` shows and acts as it takes actions."""
    actions = ActionSpec.of(env.action_space)
    leaves = {name: leaf for name, leaf in env.observation_space.items() if name != "action_mask"}
    count = actions.num_outputs + gaussian * actions.num_continuous
    spec = {
        "network": network,
        "hidden": [],
        "leaves": {name: [list(leaf.shape), str(leaf.dtype)] for name, leaf in leaves.items()},
        "num_actions": count,
        "normalised": [],
        "representation": env.representation,
        **({} if actions.plain else {"actions": actions.to_dict()}),
        **({"gaussian": True} if gaussian else {}),
    }
    shapes = {name: leaf.shape for name, leaf in leaves.items()}
    made = networks.make_network(network, shapes, count, choices=actions.sizes[0] if actions.sizes else None)
    size = sum(int(np.prod(shape)) for shape in networks.parameter_shapes(made).values())
    weights = np.random.default_rng(seed).normal(0, scale, size).astype(np.float32)
    return make_policy(spec, weights, {"count": np.array(0)})
