"""Deep deterministic policy gradient, also for discrete choices; see README.md of this folder."""
