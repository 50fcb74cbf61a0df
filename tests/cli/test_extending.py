"""docs/extending.md from top to bottom in a copy of the project: write files, apply diffs, run commands."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from fences import ROOT, blocks

PAGE = ROOT / "docs" / "extending.md"
LEFT_OUT = shutil.ignore_patterns(
    ".git", ".venv", ".*_cache", ".hypothesis", "__pycache__", "models", "results", "build", "*.egg-info"
)


def sections() -> dict[str, list]:
    """Return heading -> its blocks."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    starts = {number: line.removeprefix("## ") for number, line in enumerate(lines, 1) if line[:3] == "## "}
    found: dict[str, list] = {heading: [] for heading in starts.values()}
    for block in blocks(PAGE):
        found[starts[max(number for number in starts if number < block.line)]].append(block)
    return found


SECTIONS = sections()


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Path:
    """A copy of the project, changed by one section after the other."""
    folder = tmp_path_factory.mktemp("extending") / "project"
    shutil.copytree(ROOT, folder, ignore=LEFT_OUT)
    return folder


def run(command: str, folder: Path) -> None:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    # The copy comes before the installed project; pytest's own processes are not to write into the copy's.
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(folder)}
    environment.pop("PYTEST_ADDOPTS", None)
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"


def apply(diff: str, path: Path) -> None:
    """Replace the lines marked - and unmarked by those marked + and unmarked; they must be there once."""
    lines = diff.splitlines()
    before = "".join(f"{line[1:]}\n" for line in lines if line[:1] in ("-", " "))
    after = "".join(f"{line[1:]}\n" for line in lines if line[:1] in ("+", " "))
    text = path.read_text(encoding="utf-8")
    assert text.count(before) == 1, f"{path.name} has no such lines any more:\n{before}"
    path.write_text(text.replace(before, after), encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("heading", SECTIONS)
def test_the_steps_work_as_written(heading, copy):
    for block in SECTIONS[heading]:
        path = copy / block.file
        if block.language == "python":
            assert block.file, f"line {block.line}: name the file above the block"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
        elif block.language == "diff":
            apply(block.text, path)
        else:
            assert block.language == "sh", f"line {block.line}: what is this block for?"
            for command in block.text.splitlines():
                run(command, copy)


def test_the_code_shown_passes_the_linter(copy, tmp_path):
    pytest.importorskip("ruff", reason="the linter is a development dependency")
    for block in (block for group in SECTIONS.values() for block in group if block.language == "python"):
        (tmp_path / block.file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / block.file).write_text(block.text, encoding="utf-8")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for words in (["check", "--ignore", "D,I001"], ["format", "--check"]):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *words, "."], cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout


def test_all_kinds_are_shown():
    kinds = ["A heuristic", "A reward", "A trace format", "An algorithm", "A model of stable-baselines3"]
    assert list(SECTIONS) == kinds
