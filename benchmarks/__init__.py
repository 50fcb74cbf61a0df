"""Measurements that back the project's claims: `python -m benchmarks`; see the README in this folder."""
