"""Laws of a job's demand: how many cores, how much memory, how many GPUs.

Apart from the laws of one number because the resources of a job belong together: in `cluster_mix` memory goes
with the cores; a correlation joins laws by a Gaussian copula, whatever they are (Nelsen, An Introduction to
Copulas, 2006, sections 2.3 and 5.1.2).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from schedrl.settings import UserError

from .laws import LAWS, Law, Lognormal, parse

BLOCK = 32_768
"""Jobs drawn at once under a copula: their arrays stay in the processor's cache. Changes no result."""


class SizeLaw(Protocol):
    """Demands of R resources."""

    def draw(self, rng: np.random.Generator, size: int) -> np.ndarray:
        """Draw demands [size, R]."""

    def mean(self) -> np.ndarray:
        """Return the expected demand [R]."""


class ClusterMix:
    """Mostly small jobs for servers of 8 cores, 32 GB and 2 GPUs.

    1, 2, 4 or 8 cores; 30 % of the jobs want 1 or 2 GPUs and have at most 4 cores; memory is cores times
    a lognormal number of GB, set to the bounds where it falls outside.
    """

    CORES = np.repeat([1.0, 2.0, 4.0, 8.0], [45, 30, 18, 7])
    GPUS = np.repeat([0.0, 1.0, 2.0], [70, 21, 9])
    """[100] values, each with a chance of 1 %."""
    CORES_WITH_GPU = 4.0
    MEMORY = Lognormal(median=3.0, sigma=0.7, low=0.5, high=32.0)
    """GB per core; the bounds are the job's."""

    def draw(self, rng: np.random.Generator, size: int) -> np.ndarray:
        """Draw demands [size, 3]: cores, GB, GPUs."""
        of_cores, of_gpus, of_memory = rng.spawn(3)
        demand = np.empty((3, size)).T  # a column at a time is written much faster so
        cores = self.CORES[of_cores.integers(0, 100, size)]
        gpus = self.GPUS[of_gpus.integers(0, 100, size)]
        np.minimum(cores, self.CORES_WITH_GPU, out=cores, where=gpus > 0)
        memory = of_memory.standard_normal(size)
        memory *= self.MEMORY.sigma
        np.exp(memory, out=memory)
        memory *= self.MEMORY.median
        memory *= cores
        np.clip(memory, self.MEMORY.low, self.MEMORY.high, out=memory)
        for column, values in enumerate((cores, memory, gpus)):
            demand[:, column] = values
        return demand

    def mean(self) -> np.ndarray:
        """Return the expected demand [3]."""
        share = np.mean(self.GPUS > 0)
        capped = np.minimum(self.CORES, self.CORES_WITH_GPU)
        law = self.MEMORY
        of_cores = {
            float(cores): Lognormal(cores * law.median, law.sigma, law.low, law.high).mean()
            for cores in np.unique(self.CORES)
        }
        memory = np.mean(
            [
                share * of_cores[with_gpu] + (1 - share) * of_cores[without]
                for with_gpu, without in zip(capped.tolist(), self.CORES.tolist(), strict=True)
            ]
        )
        cores = share * capped.mean() + (1 - share) * self.CORES.mean()
        return np.array([cores, memory, self.GPUS.mean()])


@dataclass(frozen=True)
class Each:
    """One law per resource, independent or with one Spearman correlation between every two of them."""

    laws: tuple[Law, ...]
    spearman: float = 0.0

    def draw(self, rng: np.random.Generator, size: int) -> np.ndarray:
        """Draw demands [size, R]."""
        demand = np.empty((len(self.laws), size)).T
        if not self.spearman:
            for column, (law, own) in enumerate(zip(self.laws, rng.spawn(len(self.laws)), strict=True)):
                demand[:, column] = law.draw(own, size)
            return demand
        root = np.linalg.cholesky(self.normal_correlation(len(self.laws)))
        streams = rng.spawn(len(self.laws))
        for start in range(0, size, BLOCK):
            rows = demand[start : start + BLOCK]
            normals = [own.standard_normal(len(rows)) for own in streams]
            for column, law in enumerate(self.laws):
                mixed = root[column, 0] * normals[0]
                for other in range(1, column + 1):  # no matrix product: its last digits vary with the machine
                    mixed += root[column, other] * normals[other]
                rows[:, column] = law.from_normal(mixed)
        return demand

    def normal_correlation(self, count: int) -> np.ndarray:
        """Return the correlation [R, R] of the normals under the copula: 2 sin(pi / 6 x Spearman's)."""
        pearson = 2 * math.sin(math.pi / 6 * self.spearman)
        return np.full((count, count), pearson) + (1 - pearson) * np.eye(count)

    def mean(self) -> np.ndarray:
        """Return the expected demand [R]."""
        return np.array([law.mean() for law in self.laws])


@dataclass(frozen=True)
class Shares:
    """Shares of a largest demand, the same share of every resource, drawn from one law."""

    law: Law
    largest: np.ndarray
    """[R] demand of a job whose value is 1."""

    def draw(self, rng: np.random.Generator, size: int) -> np.ndarray:
        """Draw demands [size, R]."""
        return self.law.draw(rng, size)[:, None] * self.largest

    def mean(self) -> np.ndarray:
        """Return the expected demand [R]."""
        return self.law.mean() * self.largest


UNIFORM = ("whole:1:8", "uniform:0.5:32", "whole:0:2")
"""What `sizes uniform` stands for: up to a server of 8 cores, 32 GB and 2 GPUs."""


def size_law(texts: Sequence[str], num_resources: int, spearman: float = 0.0) -> SizeLaw:
    """Return the law that the setting `sizes` describes.

    Raises:
        UserError: not one law per resource, a law refused, or one that can give a job without any demand.
    """
    named = len(texts) == 1 and texts[0] in ("cluster_mix", "uniform")
    if named and num_resources != 3:
        raise UserError(
            f"sizes {texts[0]} has cpu, memory and gpu, and resources names {num_resources}; "
            "give one law per resource, for example whole:1:8"
        )
    if named and texts[0] == "cluster_mix":
        return ClusterMix()
    laws = tuple(parse("sizes", text, LAWS) for text in (UNIFORM if named else texts))
    if len(laws) != num_resources:
        raise UserError(
            f"sizes has {len(laws)} laws for {num_resources} resources; give one per resource, "
            "or cluster_mix or uniform"
        )
    if not any(law.at(np.array([1e-9]))[0] > 0 for law in laws):
        raise UserError(
            f"sizes {','.join(texts)} can give a job that demands nothing; raise a low end above 0"
        )
    return Each(laws, spearman)
