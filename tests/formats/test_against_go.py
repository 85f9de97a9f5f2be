"""Our readers beside those of Kubernetes' own libraries, over many random texts: nightly, as it needs Go."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from multikueue.core.model.written_values import is_label_selector, parse_duration
from multikueue.errors import KubeconfigError
from multikueue.kube import load_kubeconfig
from multikueue.kube.kubernetes_yaml import KubernetesLoader
from tests.formats.programs import answered, built

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

_SCALARS = [*"01789boxeE._-+aF:yn", "inf", "12", "00", "0b", "0o", "0x", "1e", "T", "Z", "2026-01-01"]
_PARTS = [*"{}[]#'\"ax1", "b:", "c: ", "- ", "\t", "\t", " ", "  ", "\n", "\n", " # ", ", "]
_SELECTORS = [
    "a",
    "b",
    "in",
    "notin",
    " ",
    "\t",
    "=",
    "==",
    "!=",
    "!",
    ">",
    "<",
    "(",
    ")",
    ",",
    "1",
    "-",
    ".",
    "x.y/",
    "A",
]
_DURATIONS = ["1", "0", ".", "5", "h", "m", "s", "ms", "us", "µs", "ns", "+", " ", "d"]
_WORDS = [word for text in ("y", "n", "yes", "no", "true", "false", "on", "off") for word in (text, text.upper())]


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, list[str]], list[tuple[bool, Any]]]:
    """Whether Go takes each text, and what it reads."""
    program = built("go", tmp_path_factory.mktemp("go"))

    def asked(what: str, texts: list[str]) -> list[tuple[bool, Any]]:
        answers = answered(program, [json.dumps([what, text]) for text in texts])
        return [(taken, read) for taken, read in map(json.loads, answers)]

    return asked


def drawn(parts: list[str], most: int, count: int) -> list[str]:
    rng = random.Random(20261128)
    return ["".join(rng.choices(parts, k=rng.randint(1, most))) for _ in range(count)]


def test_scalars(ask: Callable[[str, list[str]], list[tuple[bool, Any]]]) -> None:
    texts = [text for text in drawn(_SCALARS, 6, 30_000) if not text.startswith(":") and not text.endswith(":")]
    for text, (taken, wanted) in zip(texts, ask("yaml", texts), strict=True):
        try:
            read = yaml.load(text, KubernetesLoader)
        except yaml.YAMLError:
            assert not taken, text
            continue
        number = isinstance(wanted, int | float) and not isinstance(wanted, bool)
        assert taken, text
        assert float(read) == float(wanted) if number else read == wanted, text
        assert isinstance(read, str) == isinstance(wanted, str), text


def test_documents(ask: Callable[[str, list[str]], list[tuple[bool, Any]]]) -> None:
    """What stands around scalars: lines, indentation, tabs, comments, brackets and quotes.

    Not `[b:]`: the text `b:` for Go, and a key without a value here.
    """
    texts = [f"k: {text}" for text in drawn(_PARTS, 9, 60_000) if not re.search(r":[]}[{,]", text)]
    for text, (taken, wanted) in zip(texts, ask("yaml", texts), strict=True):
        try:
            read = yaml.load(text, KubernetesLoader)
        except yaml.YAMLError:
            assert not taken, text
            continue
        assert (taken, read) == (True, wanted), text


def test_label_selectors(ask: Callable[[str, list[str]], list[tuple[bool, Any]]]) -> None:
    texts = [text for text in drawn(_SELECTORS, 7, 30_000) if text.strip()]
    for text, (taken, _) in zip(texts, ask("selector", texts), strict=True):
        assert is_label_selector(text) == taken, text


def test_durations(ask: Callable[[str, list[str]], list[tuple[bool, Any]]]) -> None:
    texts = drawn(_DURATIONS, 6, 30_000)
    for text, (taken, seconds) in zip(texts, ask("duration", texts), strict=True):
        try:
            read = parse_duration(text).total_seconds()
        except ValueError:
            assert not taken, text
            continue
        assert taken, text
        assert read == pytest.approx(seconds, abs=1e-6), text


def test_booleans_of_kubeconfigs(ask: Callable[[str, list[str]], list[tuple[bool, Any]]], tmp_path: Path) -> None:
    texts = [*_WORDS, *(f'"{word}"' for word in _WORDS), "0", "1", "~", "null", "[]", "{}", "tRue", "!!str n"]
    for text, (taken, wanted) in zip(texts, ask("kubeconfig", texts), strict=True):
        cluster = f"{{server: https://h, insecure-skip-tls-verify: {text}}}"
        path = tmp_path / "kubeconfig"
        path.write_text(
            f"clusters: [{{name: c, cluster: {cluster}}}]\n"
            "contexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n"
        )
        try:
            assert load_kubeconfig(path).verify_tls is not wanted, text
        except KubeconfigError:
            assert not taken, text
        else:
            assert taken, text
