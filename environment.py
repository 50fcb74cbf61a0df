"""Where schedulers are trained and measured: the front door to the environments.

| name     | decision                   | action                 | observation         | when to use         |
|----------|----------------------------|------------------------|---------------------|---------------------|
| `deeprm` | which visible job to start | `Discrete(slots + 1)`, | a Dict by           | one resource pool   |
|          | now, or to let time pass   | the no-op is last      | `representation`    | (HotNets 2016)      |

`make` gives one environment, `make_vec` a batch of hundreds that one compiled call steps (autoreset mode
SAME_STEP). `import environment` also registers both with Gymnasium, as `schedrl/DeepRM-v0`:
`gymnasium.make("schedrl/DeepRM-v0", preset="deeprm-130")`, `gymnasium.make_vec(...)`.

Every observation has `action_mask` (bool, True = legal, at least one is). Beside it, by `representation`:
`"slots"` (`cluster`, `queue`, `backlog`: scaled to about 0 to 1), `"compact"` and `"image"` (the original
DeepRM's vector and picture) or `"state"` (unscaled, what the heuristics read). It changes neither jobs nor
physics. `FlattenObservations` makes a Box of any of them. `python parameters.py deeprm` lists all settings.

`python environment.py` plays a short episode, decision by decision.
"""

import sys
from typing import Any

import gymnasium
from gymnasium.vector import VectorEnv

from schedrl import registry
from schedrl.envs.deeprm.settings import DeepRMSettings
from schedrl.envs.flatten import FlattenObservations
from schedrl.launch.workload import add_workload_arguments, guest_of
from schedrl.settings import Parser, add_arguments, main_guard, resolve, whole_number

__all__ = ["FlattenObservations", "make", "make_vec"]

SHORT = 6
"""Arrival steps of the episode that the command plays."""


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
        name: `deeprm` or `schedrl/DeepRM-v0`.
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
        **settings: as in `make`.

    Raises:
        UserError: an unknown name (the nearest are listed) or a value refused.
    """
    kind = registry.get("vector_environment", name)
    return kind(
        num_envs=num_envs, seed=seed, family=family, preset=preset, workload=workload, copy=copy, **settings
    )


@main_guard
def main(argv: list[str] | None = None) -> int:
    """Play one annotated episode by shortest-job-first."""
    parser = Parser(description="Play a short DeepRM episode, decision by decision.")
    guest = guest_of(argv, DeepRMSettings, [])
    parser.add_argument("--seed", type=whole_number(0), default=0, help="of the jobs (default: 0)")
    add_workload_arguments(parser, guest)
    add_arguments(parser, DeepRMSettings)
    args = parser.parse_args(argv)
    resolved = resolve([DeepRMSettings], args, guest=guest)
    settings = resolved[DeepRMSettings]
    if "sequence_length" not in resolved.given[DeepRMSettings]:
        settings = settings.replace(sequence_length=SHORT)
    from schedrl.envs.deeprm.tour import annotated_episode

    for line in annotated_episode(settings, args.seed):
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
