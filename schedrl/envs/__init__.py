"""Gymnasium environments over the simulators, one folder each, and the probes that algorithms are tested on."""
