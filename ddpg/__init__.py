"""Deep deterministic policy gradient, for choices too; see README.md here and docs/algorithms/ddpg.md."""
