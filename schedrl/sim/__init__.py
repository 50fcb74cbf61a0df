"""Pure simulation: arrays in, arrays out. Every kernel stands beside its plain-Python specification."""
