"""A checkpoint of several replicas counts when all parts are whole: else the one before is loaded."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from schedrl.learning import shards
from schedrl.learning.replicas import ALONE, Replicas
from schedrl.settings import UserError

COUNT = 3


class InThreads(Replicas):
    """Replicas that are threads of this process."""

    count = COUNT

    def __init__(self, index, shared):
        self.index, (self._table, self._barrier) = index, shared

    def gather(self, vector):
        self._barrier.wait(60)
        self._table[self.index] = np.asarray(vector, np.float64)
        self._barrier.wait(60)
        return np.stack([self._table[index] for index in range(COUNT)])


@pytest.fixture
def together():
    """Return what calls a function with each replica at once; exceptions are among the results."""

    def call(function):
        shared = {}, threading.Barrier(COUNT)

        def one(index):
            try:
                return function(InThreads(index, shared))
            except Exception as error:
                return error

        with ThreadPoolExecutor(COUNT) as pool:
            return list(pool.map(one, range(COUNT)))

    return call


def saving(folder, number):
    def save(replicas):
        state = {"model": {"x": np.array([number, replicas.index]), "name": f"{number}/{replicas.index}"}}
        shards.save(folder, number, state, 1.5, replicas)

    return save


def names(together, folder):
    found = together(lambda replicas: shards.load(folder, replicas))
    for index, (state, header) in enumerate(found):
        assert state["model"]["x"][1] == index
        assert header["seconds"] == 1.5
    return [state["model"]["name"] for state, _ in found]


def of(number):
    return [f"{number}/{index}" for index in range(COUNT)]


def test_each_replica_gets_its_own_part_of_the_newest_and_two_stay(together, tmp_path):
    for number in (100, 200, 300):
        assert together(saving(tmp_path, number)) == [None] * COUNT
        assert names(together, tmp_path) == of(number)
    files = {path.name for path in (tmp_path / "checkpoints").iterdir()}
    assert files == {
        shards.part_of(tmp_path, number, index).name for number in (200, 300) for index in range(COUNT)
    }


@pytest.mark.parametrize("full", range(COUNT))
def test_a_part_that_cannot_be_written_fails_all_and_the_one_before_stays(
    full, together, tmp_path, monkeypatch
):
    together(saving(tmp_path, 100))
    write = shards.save_arrays

    def failing(path, arrays, header):
        if path == shards.part_of(tmp_path, 200, full):
            raise OSError(28, "No space left on device")
        write(path, arrays, header)

    monkeypatch.setattr(shards, "save_arrays", failing)
    errors = together(saving(tmp_path, 200))
    assert [type(error) for error in errors] == [
        OSError if index == full else shards.OthersFailed for index in range(COUNT)
    ]
    assert names(together, tmp_path) == of(100)
    monkeypatch.undo()
    together(saving(tmp_path, 200))
    assert names(together, tmp_path) == of(200)


def test_parts_of_a_checkpoint_that_the_chief_has_not_written_do_not_count(together, tmp_path):
    together(saving(tmp_path, 100))
    together(saving(tmp_path, 200))
    shards.part_of(tmp_path, 200, 0).unlink()  # as if all had been killed before its turn
    (tmp_path / "checkpoints" / ".step_000000000200.npz.1.tmp").write_bytes(b"half")
    assert names(together, tmp_path) == of(100)


def test_a_missing_or_damaged_part_is_an_error_and_not_another_checkpoint(together, tmp_path):
    together(saving(tmp_path, 100))
    shards.part_of(tmp_path, 100, 1).write_bytes(b"half")
    shards.part_of(tmp_path, 100, 2).unlink()
    found = together(lambda replicas: shards.load(tmp_path, replicas))
    assert [isinstance(one, UserError) for one in found] == [False, True, True]


def test_another_number_of_workers_is_refused(together, tmp_path):
    together(saving(tmp_path, 100))
    with pytest.raises(UserError, match="was trained by 3 workers, here are 1"):
        shards.load(tmp_path, ALONE)
