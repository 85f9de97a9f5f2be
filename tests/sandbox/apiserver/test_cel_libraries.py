"""Rules of CRDs have the functions that Kubernetes' libraries have."""

from __future__ import annotations

import pytest

from multikueue.sandbox.apiserver.validation.cel_rules import check_rules


@pytest.mark.parametrize(
    "rule",
    [
        "self.split('.').size() == 2",
        "self.lowerAscii() == 'a.b' && self.trim() == self",
        "self.replace('.', '-') == 'a-b' && self.substring(2) == 'b' && self.charAt(1) == '.'",
        "self.indexOf('b') == 2 && ['a', 'b'].indexOf('b') == 1",
        "[1, 2].sum() == 3 && [1, 2].isSorted() && ['a', 'b'].join('.') == self",
        "sets.contains(['a', 'b'], ['a']) && string(self == 'a.b') == 'true'",
    ],
)
def test_a_rule_that_holds_there_holds_here(rule: str) -> None:
    assert list(check_rules({"x-kubernetes-validations": [{"rule": rule}]}, "a.b")) == []
    assert list(check_rules({"x-kubernetes-validations": [{"rule": f"!({rule})"}]}, "a.b"))
