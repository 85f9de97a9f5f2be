"""The picture of `kubectl logs` on the manager: `python -m tests.docs.terminal` runs the commands, and writes what they
print, at the times at which they print it, to `docs/pictures/mirror-pods.svg`.

It takes kubectl; the sandbox, the daemon and who answers for logs are started as `multikueue sandbox --pods` prints it.
"""

from __future__ import annotations

import io
import re
import subprocess
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.text import Text

from tests.controlplane.binaries import find_kubectl
from tests.integration.test_mirror_practice import practice

TARGET: Final = Path(__file__).parents[2] / "docs" / "pictures" / "mirror-pods.svg"
FOLLOWED: Final = 8
"""Lines of the log that are shown."""
WIDTH: Final = 92
STYLE: Final = """
    @keyframes shown { from { visibility: hidden } }
    @media (prefers-reduced-motion: no-preference) {
"""

Lines = list[tuple[float, Text]]
"""Each with the seconds since the beginning."""


def recorded(environment: dict[str, str], sample: Path) -> Lines:
    """A job is created on the manager; its pods there, its log, and where it runs."""
    _until(environment, "node/multikueue-worker1", "--for=create")
    lines, began = Lines(), time.monotonic()

    def run(*arguments: str, most: int = 100) -> list[str]:
        """Run kubectl, and note each line when it is printed."""
        shown = ["job.yaml" if argument == str(sample) else argument for argument in arguments]
        lines.append((time.monotonic() - began, Text(f"$ kubectl {' '.join(shown)}", "bold")))
        printed = list[str]()
        command = [str(find_kubectl()), *arguments]
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for line in process.stdout:
                printed.append(line.rstrip())
                lines.append((time.monotonic() - began, Text(printed[-1])))
                if len(printed) == most:
                    break
            process.kill()
        return printed

    name = run("create", "-f", str(sample))[0].split()[0]
    run("wait", name, "--for=jsonpath={.status.ready}=1")
    _until(environment, "pods", "--all", "--for=condition=Ready")
    run("get", "pods,nodes")
    run("logs", name, "-f", most=FOLLOWED)
    run("--context", "worker1", "get", "pods")
    return lines


def _until(environment: dict[str, str], *wanted: str) -> None:
    """Wait for what takes no part in what is shown: that the daemon has begun; people type more slowly than this."""
    asked = [str(find_kubectl()), "wait", *wanted, "--timeout=60s"]
    subprocess.run(asked, env=environment, check=True, stdout=subprocess.DEVNULL)


def picture(lines: Iterable[tuple[float, Text]]) -> str:
    """The terminal as SVG. Each line comes at its time, unless whoever looks wants no motion; nothing is loaded."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    times = list[float]()
    for at, line in lines:
        for part in line.wrap(console, WIDTH):
            console.print(part)
            times.append(at)
    drawn = console.export_svg(title="kubectl on the manager", unique_id="t")
    drawn = re.sub(r"\s*@font-face \{.*?\n    \}", "", drawn, flags=re.DOTALL).replace("Fira Code, ", "")
    rules = "".join(
        f'    [clip-path="url(#t-line-{number})"] {{ animation: shown 1ms {at:.2f}s both }}\n'
        for number, at in enumerate(times)
    )
    drawn = drawn.replace("    </style>", f"{STYLE}{rules}    }}\n    </style>", 1)
    return "\n".join(map(str.rstrip, drawn.splitlines())) + "\n"


def main() -> None:
    """Run the commands, and write the picture."""
    with tempfile.TemporaryDirectory() as folder, practice(Path(folder)) as (environment, sample):
        lines = recorded(environment, sample)
    TARGET.write_text(picture(lines))


if __name__ == "__main__":
    main()
