"""Scripts to run and to read; `paper` holds the parts of reproduce_deeprm.py."""
