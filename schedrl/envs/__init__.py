"""Gymnasium environments over the simulators, one folder each, and the probes that algorithms are tested on.

Importing this package registers them with Gymnasium: `gymnasium.make("schedrl/DeepRM-v0", ...)` and
`gymnasium.make_vec` take the keywords of `environment.make` and `environment.make_vec`.
"""

import gymnasium

IDS = {"deeprm": "schedrl/DeepRM-v0", "simple_cluster": "schedrl/SimpleCluster-v0"}
"""Short name -> Gymnasium's id."""

gymnasium.register(
    id=IDS["deeprm"],
    entry_point="schedrl.envs.deeprm.environment:DeepRMEnv",
    vector_entry_point="schedrl.envs.deeprm.vector:DeepRMVectorEnv",
)
gymnasium.register(
    id=IDS["simple_cluster"],
    entry_point="schedrl.envs.simple_cluster.environment:SimpleClusterEnv",
    vector_entry_point="schedrl.envs.simple_cluster.vector:SimpleClusterVectorEnv",
)
