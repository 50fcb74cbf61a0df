"""`poisson`: arrivals at a constant rate that know nothing of one another, the plainest of all."""

from dataclasses import dataclass

from .jobs import JobSettings


@dataclass(frozen=True)
class PoissonSettings(JobSettings):
    """Poisson arrivals; any law of durations and sizes."""
