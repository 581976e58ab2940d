"""The process `escala` or `python -m escala`: turns every ending into an exit code and one line."""

from __future__ import annotations

import os
import sys

from escala.terms.errors import EscalaError, Exit, Interrupted


def main() -> None:
    """Run the command line and exit with its code."""
    sys.exit(_code())


def _code() -> int:
    import click

    from escala.cli import app

    debug = "--debug" in sys.argv
    try:
        code = app(standalone_mode=False)
    except (EscalaError, Interrupted, click.ClickException, KeyboardInterrupt, BrokenPipeError) as error:
        if debug:
            raise
        return _end(error)
    except click.exceptions.Abort:
        return Exit.KEYBOARD
    except Exception as error:
        if debug:
            raise
        text = " ".join(f"{type(error).__name__}: {error}".split())
        sys.stderr.write(f"escala: error[BUG] escala: {text}; run again with --debug and report it, please\n")
        return Exit.BUG
    return code if isinstance(code, int) else Exit.DONE


def _end(error: BaseException) -> int:
    import click

    if isinstance(error, EscalaError):
        sys.stderr.write(f"{error}\n")
        return error.exit
    if isinstance(error, Interrupted | KeyboardInterrupt):
        sys.stderr.write("escala: interrupted; the same command goes on from here\n")
        by_hand = isinstance(error, KeyboardInterrupt) or error.keyboard
        return Exit.KEYBOARD if by_hand else Exit.INTERRUPTED
    if isinstance(error, click.ClickException):
        where = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "escala"
        text = " ".join(error.format_message().split())
        sys.stderr.write(f"escala: error[CFG-USAGE] {where}: {text}; see {where} --help\n")
        return Exit.CONFIG
    # The reader of our output went away (`escala report | head`): no error, and nothing more to flush.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return Exit.DONE


if __name__ == "__main__":
    main()
