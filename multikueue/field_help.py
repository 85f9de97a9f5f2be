"""`help()` of public classes: their fields, with what is written below each in the source.

Python keeps no docstring of a field. It is read from the source when somebody asks, so an import costs nothing.
"""

from __future__ import annotations

from typing import Final

import attrs

HEAD: Final = "Fields:"
"""What stands above them."""


@attrs.frozen
class ExplainedFields:
    """In the place of the docstring of a class: that one, and its fields."""

    plain: str | None

    def __get__(self, instance: object, owner: type) -> str | None:
        """The text."""
        explained = "\n".join(f"    {name}: {text}" for name, text in fields_of(owner).items())
        return f"{self.plain or ''}\n\n{HEAD}\n{explained}" if explained else self.plain


def fields_of(owner: type) -> dict[str, str]:
    """What is written below the fields of a class and its bases, else their types; empty without a source."""
    import ast
    import inspect
    import textwrap

    texts: dict[str, str] = {}
    for cls in reversed(owner.__mro__[:-1]):
        try:
            (body,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
        except (OSError, TypeError, SyntaxError):
            continue
        if not isinstance(body, ast.ClassDef):
            continue
        for field, below in zip(body.body, [*body.body[1:], None], strict=True):
            if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
                continue
            text = below.value.value if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) else None
            if not field.target.id.startswith("_"):
                texts[field.target.id] = (
                    " ".join(text.split()) if isinstance(text, str) else ast.unparse(field.annotation)
                )
    return texts


def explained(value: object) -> object:
    """The value; a class with fields says in `help()` from now on what they are."""
    if not isinstance(value, type) or not attrs.has(value) or isinstance(vars(value).get("__doc__"), ExplainedFields):
        return value
    if "\n    Args:" not in (value.__doc__ or ""):  # that explains them already
        type.__setattr__(value, "__doc__", ExplainedFields(value.__doc__))
    return value
