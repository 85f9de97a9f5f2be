"""How much code there may be."""

from __future__ import annotations

from pathlib import Path

from tests.docs.code_lines import code_lines

DAEMON = Path(__file__).parents[2] / "daemon/multikueued"
LOGS_ALONE = 1_092
"""Lines of `logserver` before it served jobs, without the option type that has moved to `commands/options.py`."""


SUMS = {DAEMON / "remoteapi" / name for name in ("history.py", "overview.py", "shares.py", "sums.py")}


def test_the_api_of_the_manager_and_the_page_are_small() -> None:
    """At most 1,090 lines for both: what serves the API, as far as logs did not need it, the page's local port and the
    one to which people sign in; and 340 for what is made of all jobs.

    The commands that use the API do not count, nor `multikueue usage` with its metric: `reports/usage.py`,
    `commands/usage.py` and `run/use_count.py` have 237 lines more.
    """
    folders = ("remoteapi", "dashboard", "logserver")
    files = {file for folder in folders for file in (DAEMON / folder).glob("*.py")}
    assert code_lines(files - SUMS) - LOGS_ALONE <= 1_090
    assert code_lines(SUMS) <= 340


def test_what_counts_as_code(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    text = '"""Doc."""\n\nX = 1  # one\n"""Of X.\n\nMore."""\n# nothing\nY = (\n    """text\n    more"""\n)\n'
    module.write_text(text)
    assert code_lines([module]) == 5
