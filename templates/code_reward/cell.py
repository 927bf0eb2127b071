"""The inside of the sandbox: `sandbox.py` starts this file as a process, which locks itself in and runs the program.

The kernel enforces the limits, so the program cannot remove them from Python:

- seccomp allows only the system calls that computing needs: no processes, threads, programs, sockets, signals or
  tracing, and no change of permissions or limits;
- Landlock allows reading only Python's own library, and writing nothing;
- resource limits cover CPU time, memory, open files and file size.

The expected results are never in this process. The program gets inputs and returns outputs; `sandbox.py` compares them.
"""

import ctypes
import json
import os
import platform
import resource
import struct
import sys
import sysconfig

LIBC = ctypes.CDLL(None, use_errno=True)
PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 1, 38, 22, 2
LANDLOCK_CREATE, LANDLOCK_ADD, LANDLOCK_RESTRICT = 444, 445, 446
CAPSET = {"x86_64": 126, "aarch64": 91}

#: The system calls that Python needs to compute, with their numbers on x86_64 and aarch64 (None: no such call). All
#: others are rejected, because a list of forbidden calls would miss forgotten and new ones.
ALLOWED = {
    "read": (0, 63), "write": (1, 64), "open": (2, None), "close": (3, 57), "stat": (4, None), "fstat": (5, 80),
    "lstat": (6, None), "poll": (7, None), "lseek": (8, 62), "mmap": (9, 222), "mprotect": (10, 226),
    "munmap": (11, 215), "brk": (12, 214), "rt_sigaction": (13, 134), "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139), "pread64": (17, 67), "readv": (19, 65), "writev": (20, 66),
    "access": (21, None), "select": (23, None), "sched_yield": (24, 124), "mremap": (25, 216), "madvise": (28, 233),
    "dup": (32, 23), "dup2": (33, None), "dup3": (292, 24), "nanosleep": (35, 101), "getpid": (39, 172),
    "exit": (60, 93), "uname": (63, 160), "fcntl": (72, 25), "getcwd": (79, 17), "readlink": (89, None),
    "gettimeofday": (96, 169), "getrusage": (98, 165), "sysinfo": (99, 179), "times": (100, 153), "getuid": (102, 174),
    "getgid": (104, 176), "geteuid": (107, 175), "getegid": (108, 177), "getppid": (110, 173),
    "sigaltstack": (131, 132), "gettid": (186, 178), "futex": (202, 98), "sched_getaffinity": (204, 123),
    "getdents64": (217, 61), "restart_syscall": (219, 128), "clock_gettime": (228, 113), "clock_getres": (229, 114),
    "clock_nanosleep": (230, 115), "exit_group": (231, 94), "openat": (257, 56), "newfstatat": (262, 79),
    "readlinkat": (267, 78), "faccessat": (269, 48), "pselect6": (270, 72), "ppoll": (271, 73),
    "set_robust_list": (273, 99), "getrandom": (318, 278), "membarrier": (324, 283), "statx": (332, 291),
    "rseq": (334, 293), "close_range": (436, 436), "faccessat2": (439, 439),
}  # fmt: skip
FCNTL = (0, 1, 2, 3, 1030)  # F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_DUPFD_CLOEXEC
ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
#: The instructions of a seccomp filter, and what it returns for a system call: KILL_PROCESS, ERRNO(EPERM), ALLOW.
LOAD, JUMP_EQUAL, RETURN = 0x20, 0x15, 0x06
KILL, REFUSE, ALLOW = 0x80000000, 0x00050001, 0x7FFF0000


class LockError(Exception):
    """A limit that this machine cannot enforce; the message names it."""


def lock(limits: dict) -> None:
    """Apply all limits; the system calls come last."""
    if platform.machine() not in ARCHITECTURES:
        raise LockError(f"no list of system calls for {platform.machine()}, so processes cannot be forbidden")
    LIBC.prctl(PR_SET_PDEATHSIG, 9, 0, 0, 0)  # if the parent dies, the program dies too
    limit_resources(limits)
    drop_powers()
    if LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise LockError("the kernel rejects no_new_privs")
    limit_files()
    limit_calls()


def limit_resources(limits: dict) -> None:
    seconds, memory = limits["cpu_seconds"], limits["memory_mb"] << 20
    for name, value in (
        ("RLIMIT_CPU", seconds),
        ("RLIMIT_AS", memory),
        ("RLIMIT_FSIZE", 0),
        ("RLIMIT_NOFILE", 16),
        ("RLIMIT_CORE", 0),
    ):
        resource.setrlimit(getattr(resource, name), (value, value))
    os.nice(10)  # the trainer goes first


def drop_powers() -> None:
    """Drop root's capabilities, so that it cannot raise its limits again. (Landlock limits its files.)"""
    header, nothing = struct.pack("Ii", 0x20080522, 0), bytes(24)
    if LIBC.syscall(CAPSET[platform.machine()], header, nothing):
        raise LockError(f"capabilities cannot be dropped ({os.strerror(ctypes.get_errno())})")


def limit_files() -> None:
    """Landlock: allow reading Python's library and nothing else; also forbid TCP if the kernel supports that."""
    abi = LIBC.syscall(LANDLOCK_CREATE, None, 0, 1)
    if abi < 1:
        raise LockError("this kernel does not enable Landlock (Linux 5.13 or later), so files cannot be closed off")
    access = (1 << {1: 13, 2: 14, 3: 15, 4: 15}.get(abi, 16)) - 1
    attributes = struct.pack("QQQ", access, 0b11 if abi >= 4 else 0, 0b11 if abi >= 6 else 0)
    size = 8 if abi < 4 else 16 if abi < 6 else 24
    rules = LIBC.syscall(LANDLOCK_CREATE, attributes[:size], size, 0)
    for path in library():
        place = os.open(path, os.O_PATH)
        read = (1 << 2) | (1 << 3 if os.path.isdir(path) else 0)  # READ_FILE, READ_DIR
        if LIBC.syscall(LANDLOCK_ADD, rules, 1, struct.pack("=Qi", read, place), 0):
            raise LockError(f"Landlock rejects a rule ({os.strerror(ctypes.get_errno())})")
        os.close(place)
    if LIBC.syscall(LANDLOCK_RESTRICT, rules, 0):
        raise LockError(f"Landlock cannot be turned on ({os.strerror(ctypes.get_errno())})")
    os.close(rules)


def library() -> list[str]:
    """The files of Python's standard library, without installed packages."""
    folders = {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")}
    return [e.path for f in folders for e in os.scandir(f) if e.name not in ("site-packages", "dist-packages")]


def limit_calls() -> None:
    """seccomp: a kernel filter that returns EPERM for all but the allowed system calls."""
    column, architecture = ARCHITECTURES[platform.machine()]
    numbers = sorted(pair[column] for name, pair in ALLOWED.items() if pair[column] is not None and name != "fcntl")
    code = [(LOAD, 0, 0, 4), (JUMP_EQUAL, 1, 0, architecture), (RETURN, 0, 0, KILL), (LOAD, 0, 0, 0)]
    for number in numbers:
        code += [(JUMP_EQUAL, 0, 1, number), (RETURN, 0, 0, ALLOW)]
    code += only_these(ALLOWED["fcntl"][column], FCNTL)
    code += [(RETURN, 0, 0, REFUSE)]
    packed = b"".join(struct.pack("HBBI", *line) for line in code)
    program = ctypes.create_string_buffer(packed, len(packed))
    header = struct.pack("HxxxxxxP", len(code), ctypes.addressof(program))
    if LIBC.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, header, 0, 0):
        raise LockError(f"the kernel rejects the seccomp filter ({os.strerror(ctypes.get_errno())})")


def only_these(call: int, commands: tuple) -> list[tuple]:
    """Allow a system call only with these ``commands``, because fcntl can also send signals and lock files."""
    code = [(JUMP_EQUAL, 0, len(commands) + 3, call), (LOAD, 0, 0, 24)]
    code += [(JUMP_EQUAL, len(commands) - place, 0, command) for place, command in enumerate(commands)]
    return [*code, (RETURN, 0, 0, REFUSE), (RETURN, 0, 0, ALLOW)]


def main() -> None:
    """Read the job, apply the limits, run the program, and write one line of JSON per call."""
    job = json.loads(sys.stdin.buffer.read())
    results = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nothing, standard)
    try:
        lock(job["limits"])
    except (LockError, OSError, ValueError) as error:
        results.write(json.dumps({"lock": f"{error}"}) + "\n")
        results.flush()
        os._exit(3)
    results.write(json.dumps({"locked": True}) + "\n")
    results.flush()
    space = {"__name__": "program"}
    exec(compile(job["program"], "program", "exec"), space)
    function = space[job["function"]] if job["function"] else space["answer"]
    for arguments in job["calls"]:
        results.write(json.dumps({"value": function(*arguments)}) + "\n")
        results.flush()


if __name__ == "__main__":
    main()
