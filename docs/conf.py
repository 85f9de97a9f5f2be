"""Settings of the documentation build."""

project = "multikueue"
copyright = "the multikueue authors"
author = "the multikueue authors"
extensions = ["myst_parser"]
exclude_patterns = ["_build"]
html_theme = "furo"
myst_heading_anchors = 3
