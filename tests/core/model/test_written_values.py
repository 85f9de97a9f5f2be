"""Label selectors as apimachinery's `labels.Parse` reads them."""

from __future__ import annotations

import pytest

from multikueue.core.model.written_values import is_label_selector


@pytest.mark.parametrize(
    "text",
    [
        *("a", "!a", "! a", "a=b", "a==b", "a!=b", "a = b", "a=", "a!=", "x.y/z=a", "A_b.c-d=E_f", "a=b,c", " a , !b "),
        *(
            "gpus>4",
            "gpus > 4",
            "gpus<10",
            "a in (b)",
            "a in (b,c)",
            "a notin ( b , c )",
            "a in ()",
            "a in (,b)",
            "a in(b)",
        ),
        *("a\tin (b)", "a in\t(b)\n", "region in (eu,us),\n  gpu=h100\n", "a=b\n", "in=b", "a=1.5"),
    ],
)
def test_what_kubectl_takes_is_taken(text: str) -> None:
    assert is_label_selector(text)


@pytest.mark.parametrize(
    "text",
    [
        *("", ",", "a,", ",a", "a=b,", "a=b=c", "a>x", "a>", "a>-1", "a>+1", "a>1.5", "a>=1", "a in b", "a in (b c)"),
        *("a in (b", "a in b)", "x/y/z=a", "/a=b", "X.y/z=a", "-a", "a-", "a=b-", "a=b c", "a b", "!", "!a=b", "!!a"),
        *("a in (b);c", "a=b\u00a0", "é=a", "a=" + "b" * 64, "a" * 64, "a=b" + "," + "c" * 1_000),
    ],
)
def test_what_kubectl_refuses_is_refused(text: str) -> None:
    assert not is_label_selector(text)
