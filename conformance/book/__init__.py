"""The examples of the book: every block of code on a page of `docs/`, and those of README.md."""
