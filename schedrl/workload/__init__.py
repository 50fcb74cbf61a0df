"""Jobs before they meet a cluster: the `Workload` type, distributions, reproducible streams."""

from .deeprm import DeepRMJobs
from .legacy import legacy_sequences
from .streams import FAMILIES, SequenceStream
from .types import UNKNOWN, Resource, Workload

__all__ = [
    "FAMILIES",
    "UNKNOWN",
    "DeepRMJobs",
    "Resource",
    "SequenceStream",
    "Workload",
    "legacy_sequences",
]
