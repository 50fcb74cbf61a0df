"""Every registered name stands for something, and names are listed without importing it."""

import subprocess
import sys

import pytest
from source import ROOT

from schedrl import registry

KINDS = ("environment", "environment_settings", "heuristic", "algorithm", "algorithm_settings")


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in KINDS for name in registry.names(kind)])
def test_every_registered_name_can_be_had(kind, name):
    assert callable(registry.get(kind, name))


def test_listing_names_imports_nothing_heavy():
    code = f"""if True:
        import sys
        from schedrl import registry
        for kind in {KINDS}:
            registry.names(kind)
        print(sorted({{"numpy", "numba", "tensorflow", "pandas", "gymnasium"}} & set(sys.modules)))
    """
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
