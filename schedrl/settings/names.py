"""Other spellings of a setting's name, and the nearest names to a wrong one.

The one place where names are mapped: ``parameters.py`` shows these tables as its glossary. An alias is
accepted on a command line, in a TOML file and by ``Settings.from_dict``, wherever its target exists and no
setting has its name.
"""

import difflib
from collections.abc import Iterable

LIBRARIES = {
    "ent_coef": "entropy_coef",
    "vf_coef": "value_coef",
    "n_steps": "num_steps",
    "n_envs": "num_envs",
    "n_epochs": "num_epochs",
    "update_epochs": "num_epochs",
    "total_timesteps": "total_steps",
    "clip_range": "clip_epsilon",
    "clip_coef": "clip_epsilon",
    "clip_ratio": "clip_epsilon",
    "discount": "gamma",
    "lam": "gae_lambda",
    "lr": "learning_rate",
    "minibatch_size": "batch_size",
    "env_name": "env",
    "env_id": "env",
    "algorithm": "algo",
    "episodes": "num_episodes",
    "n_episodes": "num_episodes",
    "n_workers": "num_workers",
}
"""Names that other reinforcement-learning libraries use -> ours."""

LEGACY = {
    "num_res": "num_resources",
    "num_nw": "num_job_slots",
    "res_slot": "capacity",
    "max_job_len": "max_job_duration",
    "max_job_size": "max_job_demand",
    "simu_len": "sequence_length",
    "num_ex": "num_sequences",
    "num_seq_per_batch": "episodes_per_sequence",
    "new_job_rate": "arrival_rate",
    "dist": "distribution",
    "eps_max_len": "episode_max_length",
    "repre": "representation",
    "end": "termination",
    "enter_time": "arrival_time",
    "lr_rate": "learning_rate",
    "ba_size": "batch_size",
    "ofile": "model_dir",
}
"""Names of the original DeepRM (github.com/hongzimao/deeprm: parameters.py, launcher.py's flags) -> ours."""

LEGACY_EXPERIMENTS = {"pg_re": ["--algo", "pg"], "pg_su": ["--algo", "pg", "--pretrain", "sjf"]}
"""The original's ``--exp_type`` -> the arguments that mean the same here."""

GONE = {
    "exp_type": "train with --algo NAME, test a trained model with `python slow_down_cdf.py --model_dir DIR`",
    "unseen": "leave it out: every evaluation here runs on job sequences that training never saw",
    "pg_re": "the original's pickles can't be read; continue a run with --model_dir DIR --resume",
    "pg_resume": "the original's pickles can't be read; continue a run with --model_dir DIR --resume",
    "v_re": "value networks are saved with the policy; continue a run with --model_dir DIR --resume",
    "q_re": "value networks are saved with the policy; continue a run with --model_dir DIR --resume",
    "out_freq": "leave it out: checkpoints and evaluations follow the run's own budget",
    "log": "leave it out: every run logs to its --model_dir",
    "job_num_cap": "leave it out: any number of jobs may run (it only counted the picture's colours)",
}
"""Flags of the original without a counterpart -> what to do instead."""

SHORT = {"trace": "trace_file", "CLUSTER_SPEC": "cluster_spec", "TASK_INDEX": "task_index"}
"""Other names of our own."""

LONGEST_NAME = 100
"""Characters of a wrong name that are compared: the time to compare grows with the square of the length."""
ALIASES = LIBRARIES | LEGACY | SHORT


def canonical(name: str, known: Iterable[str]) -> str:
    """Return our spelling of ``name``: dashes become underscores; aliases their target, where it is known."""
    name = name.replace("-", "_")
    known = set(known)
    target = ALIASES.get(name, name)
    return target if name not in known and target in known else name


def aliases_of(name: str) -> list[str]:
    """Return the other spellings of the setting ``name``."""
    return [alias for alias, target in ALIASES.items() if target == name]


def nearest(name: str, choices: Iterable[str], limit: int = 3) -> list[str]:
    """Return up to ``limit`` of ``choices`` that look most like ``name``, best first."""
    by_lower = {choice.lower(): choice for choice in choices}
    name = name.lower()[:LONGEST_NAME]
    return [by_lower[match] for match in difflib.get_close_matches(name, by_lower, limit, cutoff=0.5)]


def suggestion(name: str, choices: Iterable[str]) -> str:
    """Return the end of an error about the unknown ``name``: the nearest choices, or all when few."""
    choices = sorted(set(choices))
    close = nearest(name, choices)
    if close:
        return f"nearest: {', '.join(close)}"
    if not choices:
        return "there is none to choose from"
    return f"choose one of: {', '.join(choices)}" if len(choices) <= 12 else "--help lists all"
