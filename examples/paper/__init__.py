"""The parts of reproduce_deeprm.py: what is trained, what is measured on it, and how it is drawn."""
