"""Replay or widen the fuzz: `python -m tests.conformance.fuzz --seed 7 --seeds 1`."""

from __future__ import annotations

import argparse
import sys
from collections import Counter

import anyio

from tests.conformance.fuzz.fuzzing import Plan, fuzz


def main() -> None:
    """Run and print what differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--seeds", type=int, help="how many seeds; otherwise as many as --operations needs")
    parser.add_argument("--operations", type=int, default=2_000)
    parser.add_argument("--length", type=int, default=50, help="operations of one seed")
    parser.add_argument("--no-managers", action="store_true", help="do not compare managedFields")
    parser.add_argument("--show", type=int, default=20, help="how many differences to print")
    chosen = parser.parse_args()
    plan = Plan(chosen.seed, chosen.operations, chosen.seeds, chosen.length, not chosen.no_managers)
    report = anyio.run(fuzz, plan)
    differences = report.unknown
    classes = Counter(_class_of(difference.what, difference.real, difference.sandbox) for difference in differences)
    lines = [str(difference) for difference in differences[: chosen.show]]
    lines += [f"{count:4} {name}" for name, count in classes.most_common()]
    sys.stdout.write("\n".join([*lines, report.summary()]) + "\n")


def _class_of(what: str, real: object, sandbox: object) -> str:
    codes = f"{getattr(real, 'code', '')}/{getattr(sandbox, 'code', '')}"
    return f"{' '.join(what.split()[:2])} {codes}"


if __name__ == "__main__":
    main()
