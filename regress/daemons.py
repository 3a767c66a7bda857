#!/usr/bin/python3
# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
"""What every test that starts a daemon needs; shell and python use the same.

usage: daemons.py port
       daemons.py why LOG [PID [STATUS]]

port: a TCP port of this machine that no other test gets, and no outgoing
connection either.  why: the reason why a daemon does not come up, for a
test's report: whether it lives and what it does, or how it ended, and the
end of its log.
"""
import errno
import fcntl
import os
import socket
import sys
import time

LOG_LINES = 40


def take(what, low, high, is_free):
    """A number from low to high that was not given for as long as possible.

    All runs on this machine count on in one file, under a lock, so that
    nobody is given a number between somebody's look and his use of it.
    """
    path = "/tmp/cloop-%s.%d" % (what, os.getuid())
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    with os.fdopen(fd, "r+", encoding="ascii") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        last = file.read()
        number = int(last) if last.isdigit() else low - 1
        for _ in range(low, high + 1):
            number = number + 1 if low <= number < high else low
            if is_free(number):
                break
        else:
            raise SystemExit("no %s from %d to %d is free" % (what, low, high))
        file.seek(0)
        file.truncate()
        file.write("%d" % number)
    return number


def is_free_port(number):
    """Neither listened on nor in TIME_WAIT, on any address."""
    for family, address in ((socket.AF_INET, "0.0.0.0"),
                            (socket.AF_INET6, "::")):
        try:
            s = socket.socket(family)
        except OSError:
            continue                    # no IPv6 here
        with s:
            if family == socket.AF_INET6:
                s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            try:
                s.bind((address, number))
            except OSError as why:
                if family == socket.AF_INET or why.errno == errno.EADDRINUSE:
                    return False
    return True


def port():
    """Beside the range from which the kernel serves who asks for any."""
    with open("/proc/sys/net/ipv4/ip_local_port_range",
              encoding="ascii") as file:
        low, high = map(int, file.read().split())
    if low >= 12000:
        return take("port", 10000, low - 1, is_free_port)
    return take("port", high + 1, 65535, is_free_port)


def what_it_does(pid):
    """One line about a process and one for each child."""
    try:
        with open("/proc/%d/stat" % pid, encoding="utf-8") as file:
            name, _, rest = file.read().partition("(")[2].rpartition(")")
        with open("/proc/%d/wchan" % pid, encoding="ascii") as file:
            where = file.read()
        with open("/proc/%d/task/%d/children" % (pid, pid)) as file:
            children = [int(p) for p in file.read().split()]
    except OSError:
        return []
    fields, tick = rest.split(), os.sysconf("SC_CLK_TCK")
    used = (int(fields[11]) + int(fields[12])) / tick
    with open("/proc/uptime", encoding="ascii") as file:
        age = float(file.read().split()[0]) - int(fields[19]) / tick
    lines = ["process %d (%s) is in state %s (%s): %.2f s of processor time "
             "in %.1f s" % (pid, name, fields[0], where or "-", used, age)]
    for child in children:
        lines += ["  " + line for line in what_it_does(child)]
    return lines


def why(log, pid=None, status=None):
    """Lines for a test's report."""
    lines = ["the machine's load is %.1f %.1f %.1f" % os.getloadavg()]
    if status is not None:
        how = "signal %d" % -status if status < 0 else "status %d" % status
        lines.append("process %d has ended with %s" % (pid, how))
    elif pid is not None:
        lines += what_it_does(pid) or ["process %d is gone" % pid]
    try:
        with open(log, encoding="utf-8", errors="replace") as file:
            end = file.read().splitlines()[-LOG_LINES:]
        lines.append("%s%s" % (log, " ends so:" if end else " is empty"))
    except OSError as error:
        return lines + ["%s: %s" % (log, error.strerror)]
    return lines + ["  " + line for line in end]


class NotUp(AssertionError):
    """A daemon did not come up; the text says why, on several lines."""


def wait_up(process, log, what, seconds, check):
    """The first true value of check(); process: of subprocess.Popen."""
    end = time.monotonic() + seconds
    while True:
        status = process.poll()
        value = check() if status is None else None
        if value:
            return value
        if status is not None or time.monotonic() > end:
            head = what if status is not None else \
                "%s: not in %d s" % (what, seconds)
            raise NotUp("\n".join([head, *why(log, process.pid, status)]))
        time.sleep(0.05)


def main():
    words = sys.argv[1:]
    if words == ["port"]:
        print(port())
    elif words[:1] == ["why"] and 2 <= len(words) <= 4:
        print("\n".join(why(words[1], *map(int, words[2:]))))
    else:
        sys.exit(__doc__.split("\n\n")[1])


if __name__ == "__main__":
    main()
