"""Where schedulers are trained and measured: the front door to the environments.

| name             | decision                  | action                | when to use              |
|------------------|---------------------------|-----------------------|--------------------------|
| `deeprm`         | which visible job to      | `Discrete(slots + 1)`,| one resource pool        |
|                  | start, or to let a step   | the no-op is last     | (HotNets 2016)           |
|                  | pass                      |                       |                          |
| `simple_cluster` | on which machine a        | by `action`: a machine| servers with cpu, memory |
|                  | waiting job starts, or to | for the head job, or  | and GPUs; traces         |
|                  | wait for the next event   | for a visible one; or |                          |
|                  |                           | that and its shares   |                          |

`make` gives one environment, `make_vec` a batch of hundreds that one compiled call steps (autoreset mode
SAME_STEP). `import environment` also registers them with Gymnasium, as `schedrl/DeepRM-v0` and
`schedrl/SimpleCluster-v0`: `gymnasium.make("schedrl/DeepRM-v0", preset="deeprm-130")`, `gymnasium.make_vec`.

Every observation is a Dict with `action_mask` (bool, True = legal, at least one is) and, by
`representation`, `"slots"` (`cluster`, `queue`, `backlog`: scaled to about 0 to 1) or `"state"` (unscaled,
what the heuristics read); of `deeprm` also `"compact"` and `"image"` (the original's vector and picture). It
changes neither jobs nor physics. `FlattenObservations` makes a Box of any of them. `python parameters.py
deeprm` and `python parameters.py simple_cluster` list all settings.

`python environment.py` plays a short episode, decision by decision; `--env simple_cluster` on servers.
"""

import importlib
import sys
from typing import Any

import gymnasium
from gymnasium.vector import VectorEnv

from schedrl import registry
from schedrl.envs.flatten import FlattenObservations
from schedrl.launch.workload import add_workload_arguments, guest_of
from schedrl.settings import Parser, add_arguments, main_guard, peek, resolve, whole_number

__all__ = ["FlattenObservations", "make", "make_vec"]

SHORT = {"deeprm": ("sequence_length", 6), "simple_cluster": ("num_jobs", 6)}
"""Setting that says how long an episode is, and its value where the command plays one."""


def make(
    name: str = "deeprm",
    *,
    preset: str | None = None,
    workload: Any = None,
    render_mode: str | None = None,
    **settings: Any,
) -> gymnasium.Env:
    """Make one environment.

    Args:
        name: `deeprm` or `schedrl/DeepRM-v0`, `simple_cluster` or `schedrl/SimpleCluster-v0`.
        preset: named set of values, see `python parameters.py --presets`; several with commas.
        workload: name of a workload, whose settings can then be given too (`workload="bursty", load=0.9,
            burst_interval=300`; `trace="log.swf"` takes a trace). Or jobs to use instead: a
            `job_distribution.Workload` in steps and units or, for DeepRM, arrays
            `(durations [X, T], demands [X, T, R])` by step, 0 = no arrival.
        render_mode: None, "ansi" or "rgb_array".
        **settings: single settings, which win over the preset; `settings`, where to start from instead of the
            defaults; `family` of the generated sequences.

    Raises:
        UserError: an unknown name (the nearest are listed) or a value refused.
    """
    kind = registry.get("environment", name)
    return kind(preset=preset, workload=workload, render_mode=render_mode, **settings)


def make_vec(
    name: str = "deeprm",
    num_envs: int = 256,
    *,
    seed: int = 0,
    family: str = "train",
    preset: str | None = None,
    workload: Any = None,
    copy: bool = True,
    num_workers: int = 1,
    **settings: Any,
) -> VectorEnv:
    """Make a batch of environments.

    Args:
        name: as in `make`.
        num_envs: N, at least 1.
        seed: of the job sequences, until `reset(seed=...)`.
        family: "train", "validation" or "test" sequences.
        preset: as in `make`.
        workload: as in `make`.
        copy: False returns the same arrays at every step (faster: copy what you keep).
        num_workers: above 1, so many processes step them (docs/running.md); `close()` ends these.
        **settings: as in `make`.

    Raises:
        UserError: an unknown name (the nearest are listed) or a value refused.
    """
    kind = registry.get("vector_environment", name)
    env = kind(
        num_envs=num_envs, seed=seed, family=family, preset=preset, workload=workload, copy=copy, **settings
    )
    if num_workers == 1:
        return env
    from schedrl.learning.split_env import SplitVectorEnv

    return SplitVectorEnv(env, num_workers, seed=seed, copy=copy)


@main_guard
def main(argv: list[str] | None = None) -> int:
    """Play one annotated episode by shortest-job-first."""
    env = registry.find("environment", peek(argv, env="deeprm").env)
    kind = registry.get("environment_settings", env)
    parser = Parser(description="Play a short episode, decision by decision.")
    parser.add_argument("--env", default="deeprm", help=f"one of: {', '.join(registry.names('environment'))}")
    guest = guest_of(argv, kind, [])
    parser.add_argument("--seed", type=whole_number(0), default=0, help="of the jobs (default: 0)")
    add_workload_arguments(parser, guest)
    add_arguments(parser, kind)
    args = parser.parse_args(argv)
    resolved = resolve([kind], args, guest=guest)
    settings, (length, short) = resolved[kind], SHORT[env]
    if length not in resolved.given[kind]:
        settings = settings.replace(**{length: short})
    tour = importlib.import_module(f"schedrl.envs.{env}.tour")
    for line in tour.annotated_episode(settings, args.seed):
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
