"""Advantage actor-critic, synchronous; see README.md of this folder and docs/algorithms/a2c.md."""
