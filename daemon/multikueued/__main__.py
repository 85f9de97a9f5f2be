"""`python -m multikueued`."""

from __future__ import annotations

from multikueued.cli import main

if __name__ == "__main__":
    main(prog_name="multikueue")
