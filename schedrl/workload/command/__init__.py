"""The commands of `job_distribution.py`: inspect, generate, convert; one file each. No TensorFlow."""
