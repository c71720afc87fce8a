"""The command line: play with and without a terminal, serve, keygen, and errors that say what to do."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mrtr_flow.seal import KeyRing, parse_keys

ROOT = Path(__file__).parents[1]
COMMAND = [sys.executable, "-m", "mrtr_flow.cli"]


def run(*arguments: str, code: int = 0) -> str:
    done = subprocess.run(
        [*COMMAND, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


def test_play_without_a_terminal_answers_with_the_examples_on_another_process_each_round() -> None:
    out = run("play", "flows/book_seat.py")
    rounds = re.findall(r"round (\d)  ([AB]) pid (\d+)", out)
    assert [(number, name) for number, name, _ in rounds] == [
        ("1", "A"),
        ("2", "B"),
        ("3", "A"),
        ("4", "B"),
        ("5", "A"),
    ]
    assert len({pid for _, _, pid in rounds}) == 2
    assert "? Row 2 is taken. Another?" in out
    assert "token of 60 characters" in out
    assert "Row 12, ticket LH431-12-" in out
    assert "5 rounds, 4 questions" in out


def test_arguments_may_be_given_and_are_checked() -> None:
    assert "Line 1" in run("play", "flows/expense.py", "--auto", "--arg", "employee=E-1")
    assert "argument 'nope' is none of the flow's" in run("play", "flows/expense.py", "--arg", "nope=1", code=2)
    assert "'employee' is not NAME=VALUE" in run("play", "flows/expense.py", "--arg", "employee", code=2)


TWO = """
from mrtr_flow import Flow, ask, flow

@flow(examples={"ask": "x"})
def one() -> Flow[str]:
    return (yield from ask("One?", str))

@flow
def two() -> Flow[str]:
    return (yield from ask("Two?", str))
"""


def test_a_file_with_several_flows_lists_them(tmp_path: Path) -> None:
    file = tmp_path / "both.py"
    file.write_text(TWO)
    out = run("play", str(file), code=2)
    assert f"{file}:one" in out
    assert f"{file}:two" in out
    assert "One?" in run("play", f"{file}:one")
    assert "question 'ask' has no example, or no more; examples= of the flow has none: add 'ask'" in run(
        "play", f"{file}:two", code=2
    )


@pytest.mark.parametrize(
    ("target", "text"),
    [("nope.py", "is not there"), ("README.md", "no Python file"), ("mrtr_flow/errors.py", "defines no flow")],
)
def test_a_wrong_file_says_what_is_wrong(target: str, text: str) -> None:
    assert text in run("play", target, code=2)


def test_keygen_prints_a_key_that_the_ring_takes() -> None:
    KeyRing(parse_keys(run("keygen", "2026-12").strip()), audience="a")
    assert "label" in run("keygen", "a:b", code=2)


class Terminal:
    """A person at a pseudo-terminal."""

    def __init__(self, *arguments: str) -> None:
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(ROOT)
            os.environ |= {"TERM": "xterm", "COLUMNS": "200", "LINES": "40", "PROMPT_TOOLKIT_NO_CPR": "1"}
            os.execv(COMMAND[0], [*COMMAND, *arguments])
        self.out = ""

    def until(self, text: str) -> None:
        """Read until `text` is on the screen after what was seen last."""
        seen = ""
        deadline = time.monotonic() + 30
        while text not in seen:
            assert time.monotonic() < deadline, f"{text!r} did not come:\n{self.out}"
            if not select.select([self.fd], [], [], 1)[0]:
                continue
            try:
                data = os.read(self.fd, 65536)
            except OSError:
                data = b""
            assert data, f"{text!r} did not come:\n{self.out}"
            plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", data.decode(errors="replace"))
            seen += plain
            self.out += plain

    def type(self, text: str) -> None:
        os.write(self.fd, text.encode())

    def end(self) -> int:
        while True:
            try:
                if not os.read(self.fd, 65536):
                    break
            except OSError:
                break
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def servers(self) -> list[int]:
        return [int(pid) for pid in re.findall(r"[AB] pid (\d+)", self.out)][:2]


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_person_at_a_terminal_answers_forms_drawn_from_the_schema() -> None:
    person = Terminal("play", "flows/book_seat.py", "--arg", "flight=LH 431")
    person.until("Your answer")
    person.type("\r")
    person.until("Value")
    person.type("abc\r")
    person.until("whole number")
    person.type("\x7f\x7f\x7f12\r")
    person.until("Confirm")
    person.type("\r")
    person.until("Row 12, ticket LH431-12-")
    assert person.end() == 0
    assert not any(map(alive, person.servers()))


def test_an_interrupt_leaves_nothing_running() -> None:
    person = Terminal("play", "flows/book_seat.py", "--arg", "flight=LH 431")
    person.until("Your answer")
    servers = person.servers()
    assert len(servers) == 2
    assert all(map(alive, servers))
    person.type("\x03")
    assert person.end() == 130
    assert not any(map(alive, servers))


def test_servers_end_with_the_program_that_started_them() -> None:
    person = Terminal("play", "flows/book_seat.py", "--arg", "flight=LH 431")
    person.until("Your answer")
    servers = person.servers()
    os.kill(person.pid, signal.SIGKILL)
    person.end()
    deadline = time.monotonic() + 10
    while any(map(alive, servers)) and time.monotonic() < deadline:
        select.select([], [], [], 0.05)
    assert not any(map(alive, servers))
