"""How much code there may be."""

from __future__ import annotations

from pathlib import Path

from tests.docs.code_lines import code_lines

DAEMON = Path(__file__).parents[2] / "daemon/multikueued"
LOGS_ALONE = 1_092
"""Lines of `logserver` before it served jobs, without the option type that has moved to `commands/options.py`."""


def test_the_api_of_the_manager_and_the_page_are_small() -> None:
    """At most 950 lines for both: what serves the API, as far as logs did not need it, and the page's local port.

    The commands that use the API do not count, nor `multikueue usage` with its metric: `reports/usage.py`,
    `commands/usage.py` and `run/use_count.py` have 237 lines more.
    """
    folders = ("remoteapi", "dashboard", "logserver")
    assert code_lines(file for one in folders for file in (DAEMON / one).glob("*.py")) - LOGS_ALONE <= 950


def test_what_counts_as_code(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    text = '"""Doc."""\n\nX = 1  # one\n"""Of X.\n\nMore."""\n# nothing\nY = (\n    """text\n    more"""\n)\n'
    module.write_text(text)
    assert code_lines([module]) == 5
