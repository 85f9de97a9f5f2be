"""The parts of pages that are made of code: they stand between two marks."""

from __future__ import annotations


def replaced(page: str, writer: str, text: str) -> str:
    """The page with this text between the marks of a writer."""
    begin, end = f"<!-- written by {writer} -->", "<!-- end -->"
    head, rest = page.split(begin, 1)
    _, tail = rest.split(end, 1)
    return f"{head}{begin}\n\n{text}\n\n{end}{tail}"
