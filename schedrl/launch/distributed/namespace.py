"""A network of their own for the workers of one host, in which there is nothing but the loopback (Linux).

TensorFlow's servers listen on all interfaces, whatever address they are given, and let in whoever reaches
their port; who is in can read and write the user's files. No setting of TensorFlow changes that, so workers
that are started on one host live in a network namespace: nobody else can reach a port in it.

Run as a script, this file makes the namespace and waits; it imports nothing of the project, to be quick. A
user who may not make one gets it within a user namespace, in which nothing but the own identity exists.

Source: man 7 network_namespaces, user_namespaces; man 2 setns, unshare.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

NEW_USER, NEW_NETWORK = 0x10000000, 0x40000000
SET_FLAGS, UP = 0x8914, 1
"""Of man 7 netdevice: SIOCSIFFLAGS, IFF_UP."""
READY = "ready"


class Network:
    """The network of workers: a namespace, kept until it is closed and they have ended, or the host's own.

    Attributes:
        descriptors: of the user namespace, if it was needed, and of the network namespace; to be passed on.
            Empty: the host's own network.

    Raises:
        OSError: this system, or a rule of it, knows no such thing.
    """

    def __init__(self, *, private: bool) -> None:
        self.descriptors: list[int] = []
        if private:
            self._keep_new()

    def _keep_new(self) -> None:
        if sys.platform != "linux":
            raise OSError(f"{sys.platform} has no network namespaces")
        command = [sys.executable, "-I", "-S", __file__]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, start_new_session=True) as maker:
            assert maker.stdout is not None
            said = maker.stdout.readline().strip()
            if said != READY:
                raise OSError(said or f"its maker ended with exit code {maker.wait()}")
            own, its = Path("/proc/self/ns"), Path(f"/proc/{maker.pid}/ns")
            if not os.path.samefile(own / "user", its / "user"):
                self.descriptors.append(os.open(its / "user", os.O_RDONLY))
            self.descriptors.append(os.open(its / "net", os.O_RDONLY))

    def close(self) -> None:
        """Let go of it."""
        while self.descriptors:
            os.close(self.descriptors.pop())


def enter(descriptors: Sequence[int]) -> None:
    """Move this process, which may have one thread only, into a network; close the descriptors."""
    for descriptor in descriptors:
        _call("setns", descriptor, 0)
        os.close(descriptor)


def _call(name: str, *arguments: int) -> None:
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _make() -> None:
    """Move this process into a new network, and switch its loopback on."""
    user, group = os.geteuid(), os.getegid()
    try:
        _call("unshare", NEW_NETWORK)
    except PermissionError:
        _call("unshare", NEW_USER | NEW_NETWORK)
        Path("/proc/self/setgroups").write_text("deny")  # the kernel asks for it before groups are named
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    import fcntl  # late: the library is imported on other systems too
    import socket
    import struct

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SET_FLAGS, struct.pack("16sH22x", b"lo", UP))


if __name__ == "__main__":
    try:
        _make()
    except OSError as error:
        sys.exit(print(error.strerror or error))
    print(READY, flush=True)
    sys.stdin.read()
