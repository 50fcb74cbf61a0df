"""A folder or a file has one user at a time, and a crash leaves no lock behind."""

import errno
import fcntl
import shutil
import subprocess
import sys

import pytest

from schedrl.learning.budget import Budget
from schedrl.learning.run_folder import Run
from schedrl.settings.claims import LOCK, FolderLost, InUse, claim, claim_file, claim_first, series

HOLDER = """
import sys
from pathlib import Path
from schedrl.settings.claims import claim_first, series
held, _ = claim_first(series(Path(sys.argv[1])), lambda folder: not (folder / "taken").exists())
(held.place / "taken").touch()
print(held.place, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def holders(root):
    """Start processes that claim the first free folder of a series until they are ended."""
    running = []

    def start(folder, count=1):
        streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "cwd": root}
        running.extend(
            subprocess.Popen([sys.executable, "-c", HOLDER, folder], **streams) for _ in range(count)
        )
        return running[-count:]

    yield start
    for process in running:
        process.kill()
        process.communicate()


def test_ten_at_once_get_ten_folders(holders, tmp_path):
    found = {holder.stdout.readline().strip() for holder in holders(tmp_path / "deep" / "run", 10)}
    assert found == {str(path) for path, _ in zip(series(tmp_path / "deep" / "run"), range(10), strict=False)}


def test_a_second_user_learns_who_holds_it_and_a_kill_lets_go(holders, tmp_path):
    (holder,) = holders(tmp_path / "run")
    holder.stdout.readline()
    with pytest.raises(
        InUse, match=rf"run is in use: by -c, process {holder.pid} on \S+, since 20\S+ \S+ UTC; "
    ):
        claim(tmp_path / "run", "--model_dir")
    held, passed = claim_first(series(tmp_path / "run"))
    assert held.place == tmp_path / "run_2"
    assert f"process {holder.pid}" in passed[0]
    holder.kill()
    holder.wait()
    assert (tmp_path / "run" / LOCK).exists()  # a file that nobody holds
    with claim(tmp_path / "run"):
        pass
    assert not (tmp_path / "run" / LOCK).exists()
    held.release()
    assert not (tmp_path / "run_2").exists()  # made for the claim, and empty


def test_a_claim_may_wait_for_the_end_of_another(holders, tmp_path):
    (holder,) = holders(tmp_path / "run")
    holder.stdout.readline()
    said = []

    def tell(text):
        said.append(text)
        holder.kill()

    with claim(tmp_path / "run", wait=60, tell=tell):
        assert f"process {holder.pid}" in said[0]


def test_files_are_claimed_beside_them(tmp_path):
    path = tmp_path / "jobs.csv"
    with claim_file(path), pytest.raises(InUse, match="jobs.csv is in use"):
        claim_file(path)
    assert not list(tmp_path.iterdir())


def test_without_locks_it_says_so(tmp_path, monkeypatch):
    def flock(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", flock)
    with claim(tmp_path / "run") as held:
        assert "has no locks: let no other command use" in held.note


@pytest.mark.parametrize("replaced", [False, True])
def test_a_folder_that_goes_ends_the_run(replaced, tmp_path):
    folder = tmp_path / "run"
    run = Run(Budget(100), 0, folder, tensorboard=False)
    with claim(folder) as held:
        run.log(10, 1.0, {})
        shutil.rmtree(folder)
        if replaced:
            folder.mkdir()
        for use in (held.require, lambda: run.log(10, 1.0, {}), run._require_folder):
            with pytest.raises(FolderLost, match="was removed, moved or replaced while it was in use"):
                use()
    assert list(tmp_path.rglob("*")) == [folder] * replaced
