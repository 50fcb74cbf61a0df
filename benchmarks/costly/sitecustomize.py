"""Python loads this at its start where this folder is on PYTHONPATH: DeepRM's steps are then costly.

So that the launcher, and the workers that it starts, can be measured as they are.
"""

from schedrl import registry

registry.VECTOR_ENVIRONMENTS["deeprm"] = "benchmarks.burning:CostlyVectorEnv"
