"""A front door's docstring is the tour: its table and ``__all__`` agree; and ``--help`` answers at once."""

import ast
import re
import subprocess
import sys

import pytest
from source import COMMAND_LINES, FRONT_DOORS, ROOT, product

from schedrl import registry

DOORS = [source for source in product() if source.module in FRONT_DOORS]
HELPFUL = [source.module for source in product() if source.module in FRONT_DOORS + COMMAND_LINES]
HEAVY = {"tensorflow", "keras", "numba", "pandas"}


def exported(source):
    for node in source.tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return ast.literal_eval(node.value)
    return None


def table_names(docstring):
    """Return the names in the first column of the docstring's tables: ````name```` or ``| `name` |``."""
    return re.findall(r"^(?:\| *)?``?([\w.]+)(?:\(.*?\))?``?(?: +| *\|)", docstring, re.MULTILINE)


@pytest.mark.parametrize("source", DOORS, ids=lambda s: s.path)
def test_table_and_all_agree(source):
    names, docstring = exported(source), ast.get_docstring(source.tree)
    assert names is not None, f"{source.path} must define __all__"
    listed = table_names(docstring)
    assert listed, f"the docstring of {source.path} must have a table whose rows start with ``name``"
    missing = [name for name in names if not re.search(rf"\b{re.escape(name)}\b", docstring)]
    assert not missing, f"in __all__ but not in the docstring: {missing}"
    unknown = set(listed) - set(names) - set(registry.ENVIRONMENTS)
    assert not unknown, f"in the table but neither in __all__ nor registered: {unknown}"


@pytest.mark.parametrize("source", DOORS, ids=lambda s: s.path)
def test_front_doors_are_short(source):
    assert source.text.count("\n") <= 200, "a front door re-exports and explains; move the code into schedrl"


@pytest.mark.parametrize("module", HELPFUL)
def test_help_is_light_and_answers(module):
    code = (
        "import runpy, sys\n"
        f"sys.argv = ['{module}.py', '--help']\n"
        "try:\n"
        f"    runpy.run_path('{module}.py', run_name='__main__')\n"
        "except SystemExit as exit:\n"
        "    assert not exit.code, exit.code\n"
        f"print('heavy:', sorted({HEAVY} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "usage:" in done.stdout, f"{module}.py --help prints no usage"
    assert done.stdout.rstrip().endswith("heavy: []"), done.stdout.rstrip().splitlines()[-1]
