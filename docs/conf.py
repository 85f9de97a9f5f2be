"""Settings of the documentation build."""

from __future__ import annotations

import re

from sphinx.application import Sphinx
from sphinx.ext.napoleon import Config, GoogleDocstring

from multikueue.field_help import HEAD

project = "multikueue"
copyright = "the multikueue authors"
author = "the multikueue authors"
extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["_build"]
html_theme = "furo"
myst_heading_anchors = 3
default_role = "code"
add_module_names = False
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}

_DEFAULT = re.compile(
    r"NOTHING|<function[^>]*>+(?: at 0x\w+>)?|<[\w.]+ object(?: at 0x\w+)?>|\(SandboxKind\(.*?\)(?=, crds)"
)


def read_google_sections(
    app: Sphinx, what: str, name: str, obj: object, options: dict[str, bool], lines: list[str]
) -> None:
    """Turn sections such as `Args:` into fields.

    The extension napoleon itself would take an attribute's text up to a colon for its type.
    """
    if lines and lines[0].startswith("Alias for field number"):
        lines.clear()  # of a named tuple, by Python
    if HEAD in lines:
        del lines[lines.index(HEAD) :]  # each of them follows with its own text
    if what not in ("attribute", "data", "property"):
        lines[:] = GoogleDocstring(lines, Config(), app, what, name, obj, options).lines()


def shorten_defaults(
    _app: Sphinx, _what: str, _name: str, _obj: object, _options: object, signature: str | None, returns: str | None
) -> tuple[str | None, str | None]:
    """Write defaults that are made for each object, and functions, as `...`."""
    return signature and _DEFAULT.sub("...", signature), returns


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", read_google_sections)
    app.connect("autodoc-process-signature", shorten_defaults)
