"""Proximal policy optimisation with action masks; see `readme` of this folder and docs/algorithms/ppo.md."""
