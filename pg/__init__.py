"""REINFORCE with DeepRM's time-dependent baseline; see README.md of this folder and docs/algorithms/pg.md."""
