# SPDX-License-Identifier: MIT
"""Runs a command whose output is a terminal."""
import fcntl
import os
import pty
import struct
import subprocess
import termios


def read_to_end(leader):
    """What was written to the other end of a pseudo-terminal, which its writers have closed. Closes this end."""
    text = b""
    try:
        while part := os.read(leader, 65536):
            text += part
    except OSError:  # the other end is closed
        pass
    os.close(leader)
    return text


def on_terminal(command, stdin=b"", stderr_too=False, environment=None, columns=0):
    """What the command writes to the terminal, with plain line ends, and its status. There is no pager unless the
    environment has one; a variable that is None is not set."""
    variables = {"TERM": "xterm", "PATH": os.environ["PATH"], "PAGER": "cat", **(environment or {})}
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24 if columns else 0, columns, 0, 0))
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=follower,
                             stderr=follower if stderr_too else subprocess.DEVNULL,
                             env={name: value for name, value in variables.items() if value is not None})
    os.close(follower)
    try:
        child.stdin.write(stdin)
        child.stdin.close()
    except BrokenPipeError:
        pass
    text = read_to_end(leader)
    child.wait()
    return text.replace(b"\r\n", b"\n"), child.returncode
