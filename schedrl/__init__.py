"""The library: everything that must be right once (simulation, environments, evaluation, learning).

It never imports the root's front doors or an algorithm's folder. Importing it is cheap: no NumPy, Numba or
TensorFlow until a module that needs them is imported.
"""

__version__ = "0.2.0"
