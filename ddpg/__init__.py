"""Deep deterministic policy gradient, for choices with masks too; see README.md and docs/algorithms/ddpg.md."""
