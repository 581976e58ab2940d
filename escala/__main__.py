"""The process `escala` or `python -m escala`: turns every ending into an exit code and one line."""

from __future__ import annotations

import os
import sys

from escala.terms.errors import GO_ON, EscalaError, Exit, Interrupted


def main() -> None:
    """Run the command line and exit with its code."""
    sys.exit(_code())


def _code() -> int:
    import typer

    from escala.cli import app

    debug = "--debug" in sys.argv
    try:
        code = app(standalone_mode=False)
    except (EscalaError, Interrupted, KeyboardInterrupt, BrokenPipeError, typer.Abort) as error:
        if debug:
            raise
        return _end(error)
    except Exception as error:
        if debug:
            raise
        if hasattr(error, "format_message"):
            return _usage(error.format_message(), getattr(error, "ctx", None))
        text = " ".join(f"{type(error).__name__}: {error}".split())
        sys.stderr.write(f"escala: error[BUG] escala: {text}; run again with --debug and report it, please\n")
        return Exit.BUG
    return code if isinstance(code, int) else Exit.DONE


def _end(error: BaseException) -> int:
    if isinstance(error, EscalaError):
        sys.stderr.write(f"{error}\n")
        return error.exit
    if not isinstance(error, BrokenPipeError):
        sys.stderr.write(f"escala: interrupted; {getattr(error, 'next_step', GO_ON)}\n")
        return Exit.INTERRUPTED if isinstance(error, Interrupted) and not error.keyboard else Exit.KEYBOARD
    # The reader of our output went away (`escala report | head`): no error, and nothing more to flush.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return Exit.DONE


def _usage(message: str, context: object) -> int:
    """Words that the command line does not understand; found by shape, since typer may bring its own click."""
    where = getattr(context, "command_path", "escala").replace("python -m escala", "escala")
    told = " ".join(message.split()).removesuffix(".")
    sys.stderr.write(f"escala: error[CFG-USAGE] {where}: {told}; see {where} --help\n")
    return Exit.CONFIG


if __name__ == "__main__":
    main()
