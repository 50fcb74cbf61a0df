"""What learning algorithms share: what has one right answer, as pure functions and small objects.

Returns, distributions, networks, optimisers, normaliser, schedules, budget, rollouts, checkpoints, logs and
the run folder. There is no training-loop class: each algorithm's `train.py` is its own loop. TensorFlow is
imported only when a model is built, through `tf_setup`.
"""
