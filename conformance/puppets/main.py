"""One puppet process: `python -m puppets.main asyncio|twisted`."""

import sys


def main() -> None:
    """Run until the input ends, on the event loop that the first argument names.

    txaio can serve one event loop per process, so the choice comes before any other import.
    """
    if sys.argv[1] == "asyncio":
        from puppets import asyncio_loop as loop
    else:
        from puppets import twisted_loop as loop
    from puppets.commands import Commands

    loop.run(Commands(loop))


if __name__ == "__main__":
    main()
