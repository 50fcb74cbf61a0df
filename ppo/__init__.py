"""Proximal policy optimisation with action masks; see README.md of this folder and docs/algorithms/ppo.md."""
