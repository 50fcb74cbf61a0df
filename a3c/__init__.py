"""Asynchronous advantage actor-critic; see README.md of this folder and docs/algorithms/a3c.md."""
