"""Each algorithm reads alone: no block of a dozen lines stands in two algorithms' folders."""

from itertools import combinations

import pytest

from schedrl import registry

LONGEST = 11
"""Lines in a row that two folders may share, blank ones not counted."""


def lines_of(algorithm: str) -> dict[str, list[str]]:
    """Return file -> its lines without indentation, blank ones left out."""
    return {
        path.name: [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        for path in (registry.ROOT / algorithm).glob("*.py")
    }


def longest_shared(one: list[str], other: list[str]) -> list[str]:
    """Return the longest run of equal lines."""
    best, end = 0, 0
    before = [0] * (len(other) + 1)
    for i, line in enumerate(one, 1):
        row = [0] * (len(other) + 1)
        for j, candidate in enumerate(other, 1):
            if line == candidate:
                row[j] = before[j - 1] + 1
                if row[j] > best:
                    best, end = row[j], i
        before = row
    return one[end - best : end]


@pytest.mark.parametrize(("one", "other"), list(combinations(registry.names("algorithm"), 2)))
def test_no_dozen_lines_stand_in_two_folders(one, other):
    for name, lines in lines_of(one).items():
        for other_name, other_lines in lines_of(other).items():
            shared = longest_shared(lines, other_lines)
            where = f"{one}/{name} and {other}/{other_name} share:"
            assert len(shared) <= LONGEST, "\n".join([where, *shared])


def test_a_copied_block_would_be_found():
    block = [f"line {i}" for i in range(12)]
    assert longest_shared(["a", *block, "b"], ["c", "d", *block]) == block
