"""Whose folder: one command at a time writes into a folder, or a file, for as long as it runs.

A claim is a lock (`flock`) on a small hidden file in the folder, or beside the file, which says who holds it.
The operating system lets go of it when the process ends, however that happens: what a crash leaves is a file
that nobody holds, and the next claim takes it. Numbered folders are claimed the same way, so of several
commands that start at once each gets another one.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import json
import os
import socket
import sys
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from schedrl.settings.base import UserError

LOCK = ".in_use"
LOOK_EVERY = 0.2  # seconds between two tries, where a claim may wait
TAKEN = (errno.EWOULDBLOCK, errno.EACCES)
NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL)


class InUse(UserError):
    """Another process holds the folder."""


class FolderLost(Exception):
    """A folder in use was removed, moved or replaced."""


class SameFolder:
    """Tells whether a folder is still the one that it was: held open, its inode can't be given to another."""

    def __init__(self, folder: Path):
        self.folder = folder
        self._descriptor = os.open(folder, os.O_RDONLY)
        self.close = weakref.finalize(self, os.close, self._descriptor)
        """Let go of it."""

    def require(self) -> None:
        """Return if the folder is there.

        Raises:
            FolderLost: it was removed, moved or replaced.
        """
        if not _same(self._descriptor, self.folder):
            raise FolderLost(
                f"{self.folder} was removed, moved or replaced while it was in use: what it held is not "
                "there any more, and nothing is written in its place; start again"
            )


class Claim:
    """A lock that this process holds; made by `claim` and `claim_file`. Leaving it as a context lets go.

    Attributes:
        place: the folder, or the file.
        note: what to tell the user of the lock; empty for nothing.
    """

    def __init__(self, place: Path, lock: Path, descriptor: int, made: list[Path], note: str):
        self.place, self.note = place, note
        self._lock, self._descriptor, self._made = lock, descriptor, made
        self._same = SameFolder(lock.parent)

    def __enter__(self) -> Claim:
        """Hold it."""
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        """Let go."""
        self.release()

    def require(self) -> None:
        """Return if the folder is there; raise `FolderLost` otherwise."""
        self._same.require()

    def release(self) -> None:
        """Let go, and remove the lock's file and folders that were made for it and are empty."""
        if self._descriptor < 0:
            return
        if _same(self._descriptor, self._lock):  # while it is held: afterwards it may be another's
            self._lock.unlink(missing_ok=True)
        os.close(self._descriptor)
        self._descriptor = -1
        self._same.close()
        with contextlib.suppress(OSError):
            for folder in self._made:
                folder.rmdir()


def claim(
    folder: Path | str,
    flag: str = "--output_dir",
    *,
    wait: float = 0.0,
    name: str = LOCK,
    tell: Callable[[str], None] = lambda text: None,
) -> Claim:
    """Claim a folder, which is made where it isn't there.

    Args:
        folder: to be written in by this process alone.
        flag: that names it, for the message.
        wait: seconds in which whoever holds it may end.
        name: of the lock's file: several processes that share a folder hold one each.
        tell: is told once whom this one waits for.

    Raises:
        InUse: another process holds it; says which, where and since when.
        UserError: nothing can be written there.
    """
    folder = Path(folder)
    return _claim(folder, folder / name, f"choose another {flag}", wait, tell)


def claim_file(path: Path | str, flag: str = "path") -> Claim:
    """Claim a file that this process is going to write, in a folder that is there; raises as `claim`."""
    path = Path(path)
    return _claim(path, path.with_name(f".{path.name}{LOCK}"), f"choose another {flag}")


def series(default: Path, first: int = 1) -> Iterator[Path]:
    """Yield `default`, `default_2`, `default_3`, ..., without end, from the number `first` on."""
    for number in itertools.count(first):
        yield default.with_name(f"{default.name}_{number}") if number > 1 else default


def claim_first(
    candidates: Iterable[Path], usable: Callable[[Path], bool] = lambda folder: True
) -> tuple[Claim, list[str]]:
    """Claim the first of several folders that nobody holds and that is `usable` then.

    Returns:
        The claim, and for each folder that another process holds a line that says so.
    """
    passed: list[str] = []
    for folder in candidates:
        try:
            found = claim(folder)
        except InUse as error:
            passed.append(str(error).partition(";")[0])
            continue
        if usable(folder):
            return found, passed
        found.release()
    raise AssertionError("the candidates came to an end")


def _claim(
    place: Path, lock: Path, remedy: str, wait: float = 0.0, tell: Callable[[str], None] = lambda text: None
) -> Claim:
    until, told, made = time.monotonic() + wait, False, []
    while True:
        if of_folder := lock.parent == place:
            made += _make(place, remedy)
        try:
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            if of_folder and error.errno == errno.ENOENT:  # whoever held it has removed what it had made
                continue
            raise UserError(f"can't write {place}: {error.strerror}; {remedy}") from None
        try:
            held = _lock(descriptor)
        except OSError as error:
            os.close(descriptor)
            if error.errno not in TAKEN:
                raise UserError(f"can't lock {lock} ({error.strerror}); {remedy}") from None
            who = f"{place} is in use: {_who(lock)}"
            if time.monotonic() >= until:
                raise InUse(f"{who}; wait for it, or {remedy}") from None
            if not told:
                tell(f"{who}; waiting up to {wait:g} s for its end")
            told = True
            time.sleep(LOOK_EVERY)
            continue
        if _same(descriptor, lock):  # not one that its holder removed in between
            _sign(descriptor)
            alone = f"the file system of {lock.parent} has no locks: let no other command use {place}"
            note = "" if held else alone
            return Claim(place, lock, descriptor, made[::-1], note)
        os.close(descriptor)


def _lock(descriptor: int) -> bool:
    """Take the lock; return False where the file system has none.

    Raises:
        OSError: another holds it, or it can't be told.
    """
    try:
        import fcntl
    except ImportError:  # not a Unix
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in NO_LOCKS:
            return False
        raise
    return True


class _Holder(NamedTuple):
    """What a lock's file says."""

    pid: int
    host: str
    since: str
    command: str


def _sign(descriptor: int) -> None:
    """Write who holds the lock; a full disk keeps it empty, and the lock holds all the same."""
    since = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
    holder = _Holder(os.getpid(), socket.gethostname(), since, Path(sys.argv[0] or "python").name)
    with contextlib.suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps(holder._asdict()).encode() + b"\n", 0)


def _who(lock: Path) -> str:
    try:
        found = _Holder(**json.loads(lock.read_bytes()[:4096]))
        text = f"{found.command}, process {int(found.pid)} on {found.host}, since {found.since}"
    except (OSError, ValueError, TypeError):  # it is just being written
        return "by another process"
    return "by " + "".join(c for c in text if c.isprintable())[:200]


def _same(descriptor: int, path: Path) -> bool:
    own = os.fstat(descriptor)
    try:
        there = os.stat(path)
    except OSError:
        return False
    return (own.st_dev, own.st_ino) == (there.st_dev, there.st_ino)


def _make(folder: Path, remedy: str) -> list[Path]:
    """Make a folder and those above it; return what was made, outermost first."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()][::-1]
    made = []
    for path in missing:
        try:
            path.mkdir()
            made.append(path)
        except FileExistsError:
            if not path.is_dir():
                raise UserError(f"{path} is a file, not a folder; {remedy}") from None
        except FileNotFoundError:  # one above it was removed again by whoever made it
            break
        except OSError as error:
            raise UserError(f"can't make {path} ({error.strerror}); {remedy}") from None
    return made
