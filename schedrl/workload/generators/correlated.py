"""`correlated`: the resources of a job go together, by a Gaussian copula, whatever their laws are."""

from dataclasses import dataclass

import numpy as np

from schedrl.settings import UserError

from .jobs import JobSettings
from .sizes import ClusterMix, Each, SizeLaw, size_law


@dataclass(frozen=True)
class CorrelatedSettings(JobSettings):
    """Poisson arrivals of jobs whose demands are correlated, one law per resource."""

    sizes: tuple[str, ...] = ("lognormal:2:0.6:0.1:8", "lognormal:6:0.8:0.1:32", "lognormal:0.2:0.8:0.01:2")
    """One law per resource as in `durations`: lognormal, pareto, exponential, uniform, whole or constant.
    Laws of few values (whole) have ties, which weaken the correlation that a sample shows."""

    corr_coeff: float = 0.7
    """Spearman's rank correlation between every two resources, from -1 to 1, both excluded; with R resources
    it can't be far below -1 / (R - 1)."""

    def check_own(self) -> None:
        """Validate."""
        self.in_range("corr_coeff", -1, 1, open_low=True, open_high=True)

    def size_law(self) -> SizeLaw:
        """Return the law of the demands."""
        law = size_law(self.sizes, len(self.resources), self.corr_coeff)
        if isinstance(law, ClusterMix):
            raise UserError(
                "sizes cluster_mix has its own correlation; for correlated give one law per resource, "
                "or take another generator"
            )
        assert isinstance(law, Each)
        lowest = np.linalg.eigvalsh(law.normal_correlation(len(self.resources)))[0]
        self.check(
            lowest > 1e-9,
            f"corr_coeff {self.corr_coeff:g} is not possible between every two of {len(self.resources)} "
            "resources; raise it",
        )
        return law
