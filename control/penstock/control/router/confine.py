"""What a program may touch of its machine: its Python, by Landlock; and no other process, by
seccomp.

No other file is opened, none is written, nothing is executed, no TCP connection is opened or taken
at another port, and no process outside is signalled. Older kernels do a part of that, or none.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import sys
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # system calls, on every architecture
_VERSION: Final = 1  # flag
_PATH_BENEATH, _NET_PORT = 1, 2  # kinds of rules
_PR_SET_NO_NEW_PRIVS: Final = 38

_WRITE, _READ, _LIST = (1 << bit for bit in (1, 2, 3))
_FILES: Final = {1: 13, 2: 14, 3: 15, 4: 15}  # rights by version; later ones have 16
_BIND, _CONNECT = 1, 2  # from version 4
_SCOPES: Final = 3  # from version 6: abstract sockets, signals
_PR_SET_SECCOMP: Final = 22
_FILTERED: Final = 2  # mode of seccomp
_CLONE3: Final = 435  # a system call, on every architecture
_CLONE_THREAD: Final = 0x10000
_STARTS: Final = {  # by machine: as seccomp names it, clone, and what starts nothing but processes
    "x86_64": (0xC000003E, 56, (57, 58)),
    "aarch64": (0xC00000B7, 220, ()),
}
_LOAD, _IS, _IS_LEAST, _HAS, _SAY = 0x20, 0x15, 0x35, 0x45, 0x06  # instructions of its filters
_X32: Final = 0x40000000  # calls of another kind begin there
_ALLOW_CALL, _REFUSE_CALL = 0x7FFF0000, 0x50000
_DEVICES: Final = ("/dev/null", "/dev/urandom", "/dev/zero")


class _Ruleset(ctypes.Structure):
    _fields_ = [
        ("files", ctypes.c_uint64),
        ("net", ctypes.c_uint64),
        ("scopes", ctypes.c_uint64),
    ]


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32)]


class _Port(ctypes.Structure):
    _fields_ = [("allowed", ctypes.c_uint64), ("port", ctypes.c_uint64)]


def version() -> int:
    """Of the kernel's Landlock; 0: it has none."""
    return max(0, _call(_CREATE_RULESET, None, 0, _VERSION))


def confine(port: int = 0) -> bool:
    """Holds this thread to that, and those that it starts from now on; False: the kernel cannot.

    Landlock knows no threads but these: so before others start. `port`: of TCP, which may be taken
    nevertheless; 0: none."""
    ctypes.CDLL(None).prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    _start_no_process()
    known = version()
    if not known:
        return False
    files = (1 << _FILES.get(known, 16)) - 1
    net = _BIND | _CONNECT if known >= 4 else 0
    asked = _Ruleset(files, net, _SCOPES if known >= 6 else 0)
    size = 24 if known >= 6 else 16 if known >= 4 else 8
    rules = _call(_CREATE_RULESET, ctypes.byref(asked), size, 0)
    if rules < 0:
        return False
    _allow(rules, _python(), files & (_READ | _LIST))
    _allow(rules, _DEVICES, files & (_READ | _WRITE))
    if net and port:
        _call(_ADD_RULE, rules, _NET_PORT, ctypes.byref(_Port(_BIND, port)), 0)
    done = _call(_RESTRICT_SELF, rules, 0) == 0
    os.close(rules)
    return done


def _start_no_process() -> None:
    """Has the kernel refuse it; threads go on being started."""
    if platform.machine() not in _STARTS:
        return
    machine, clone, others = _STARTS[platform.machine()]
    refused = _REFUSE_CALL | errno.EPERM
    code = [(_LOAD, 0, 0, 4), (_IS, 1, 0, machine), (_SAY, 0, 0, refused), (_LOAD, 0, 0, 0)]
    for other in (_IS_LEAST, _X32), *((_IS, number) for number in others):
        code += [(other[0], 0, 1, other[1]), (_SAY, 0, 0, refused)]
    # Of clone3 a filter cannot see the flags; without it, clone is called.
    code += [(_IS, 0, 1, _CLONE3), (_SAY, 0, 0, _REFUSE_CALL | errno.ENOSYS)]
    code += [(_IS, 0, 3, clone), (_LOAD, 0, 0, 16), (_HAS, 1, 0, _CLONE_THREAD)]
    code += [(_SAY, 0, 0, refused), (_SAY, 0, 0, _ALLOW_CALL)]
    read = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *each) for each in code))
    program = struct.pack("HP", len(code), ctypes.addressof(read))
    ctypes.CDLL(None).prctl(_PR_SET_SECCOMP, _FILTERED, program, 0, 0)


def _python() -> Iterable[str]:
    """Where what can be imported lies, with the libraries below it."""
    return {sys.prefix, sys.base_prefix, "/usr", "/lib", "/lib64", *filter(None, sys.path)}


def _allow(rules: int, paths: Iterable[str], rights: int) -> None:
    for path in paths:
        with suppress(OSError):  # it is not there
            parent = os.open(path, os.O_PATH | os.O_CLOEXEC)
            beneath = _Beneath(rights, parent)
            if _call(_ADD_RULE, rules, _PATH_BENEATH, ctypes.byref(beneath), 0):
                beneath.allowed = rights & (_READ | _WRITE)  # a file: nothing of a folder's
                _call(_ADD_RULE, rules, _PATH_BENEATH, ctypes.byref(beneath), 0)
            os.close(parent)


def _call(number: int, *values: object) -> int:
    return int(ctypes.CDLL(None).syscall(number, *values))
