"""Errors that a person reads: a code, a place, what is wrong, what was expected and the way out."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from escala.terms.printable import printable


class Exit(IntEnum):
    """Exit codes of every verb."""

    DONE = 0
    BUG = 1
    CONFIG = 2
    DATA = 3
    DEVICE = 4
    TRIALS_FAILED = 5
    UNTRUSTED = 6
    UNSAFE = 7
    INTERRUPTED = 75
    KEYBOARD = 130


_EXIT_OF_FAMILY = {
    "CFG": Exit.CONFIG,
    "DATA": Exit.DATA,
    "MODEL": Exit.DATA,
    "CKPT": Exit.DATA,
    "ENV": Exit.DEVICE,
    "RES": Exit.UNTRUSTED,
    "SEC": Exit.UNSAFE,
}
_EXIT_OF_CODE = {
    # A tag in a configuration file asks for code to be run, so it is unsafe although it is configuration.
    "CFG-TAG": Exit.UNSAFE,
    # The data are whole, but not those of the records they would be compared with.
    "DATA-HASH": Exit.UNTRUSTED,
}


class EscalaError(Exception):
    """Something a person can put right.

    `code` is FAMILY-WORD (`CFG-KEY`, `DATA-IDX`, ...); the family decides the exit code.
    Printed as `escala: error[CODE] WHERE: WHAT (EXPECTED); NEXT STEP` on one line.
    """

    def __init__(self, code: str, where: str, what: str, *, expected: str = "", next_step: str = "") -> None:
        super().__init__(code, where, what, expected, next_step)
        self.code = code
        self.where = where
        self.what = what
        self.expected = expected
        self.next_step = next_step

    @property
    def exit(self) -> Exit:
        """The exit code that this error ends the program with."""
        return _EXIT_OF_CODE.get(self.code) or _EXIT_OF_FAMILY[self.code.split("-")[0]]

    def __str__(self) -> str:
        line = f"escala: error[{self.code}] {self.where}: {self.what}"
        if self.expected:
            line += f" ({self.expected})"
        if self.next_step:
            line += f"; {self.next_step}"
        # Names and contents of files stand in it, and may hold what would steer a terminal.
        return printable(" ".join(line.split()))

    def to_dict(self) -> dict[str, str]:
        """Plain data, to cross from a child process to its parent."""
        return {
            "code": self.code,
            "where": self.where,
            "what": self.what,
            "expected": self.expected,
            "next_step": self.next_step,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> EscalaError:
        """The error that `to_dict` made plain."""
        return cls(
            str(data["code"]),
            str(data["where"]),
            str(data["what"]),
            expected=str(data["expected"]),
            next_step=str(data["next_step"]),
        )


GO_ON = "the same command goes on from here"


class Unfit(Exception):
    """A strategy does not fit this host. A result, not an error; the message is the reason."""


class Unavailable(Exception):
    """A meter cannot read its quantity here. The message is the reason."""


class Interrupted(Exception):
    """Ended from outside; `next_step` says how to go on. `keyboard`: by the person at it."""

    def __init__(self, *, keyboard: bool, next_step: str = GO_ON) -> None:
        super().__init__(keyboard, next_step)
        self.keyboard = keyboard
        self.next_step = next_step
