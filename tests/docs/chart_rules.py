"""Writes the rules of the Helm chart from their source: `python -m tests.docs.chart_rules`.

Helm cannot run Python, so what depends on the settings becomes conditions in its templates. Each block of rules stands
in a template between two comments, and only what is between them is written; a test fails if it is out of date.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

import yaml

from multikueue import AVAILABLE, JobKind
from multikueue.adapters.profiles import PROFILES
from multikueue.core.model.dependencies import COPIED
from multikueue.core.model.names import Json
from multikueued.api_answers import API_SERVICE_NAME
from multikueued.rbac.logs import api_server_rules, daemon_rules, named_secret_rules, own_certificate_rules, page_rules
from multikueued.rbac.mirrors import (
    endpoint_rules,
    endpoint_secret_rules,
    mirror_key_rules,
    mirror_policy_objects,
    mirroring_rules,
    node_lease_rules,
)
from multikueued.rbac.objects import AGGREGATED, user_kind_rules, verbs_of, viewer_rules
from multikueued.rbac.role_rule import merged
from multikueued.rbac.rules import (
    IN_NAMESPACE,
    ON_MANAGER,
    bound_rules,
    certificate_rules,
    dependency_rules,
    expiry_rules,
    findings_rules,
    kind_rules_on_manager,
    lease_rules,
    secret_rules,
    webhook_rules,
)
from multikueued.rbac.spokes import impersonation_rules
from multikueued.settings.frameworks import ALIASES, AUTO

TEMPLATES: Final = Path(__file__).parents[2] / "charts" / "multikueued" / "templates"
BEGIN: Final = "# rules: {name} (written by python -m tests.docs.chart_rules)"
END: Final = "# end of rules"
_LEASE: Final = '{{ .Values.settings.name | default "multikueue" }}'
_MARKS: Final = f"{_LEASE}-marks"
_BOUND_NAMES: Final = """\
{{- if .Values.settings.boundTokens.secretNames }}
    resourceNames: {{ toJson .Values.settings.boundTokens.secretNames }}
{{- end }}
"""
_MIRRORS: Final = f"{_LEASE}-mirrors"
_DAEMON: Final = "system:serviceaccount:{{ .Release.Namespace }}:{{ .Release.Name }}-multikueued"
_FINDINGS: Final = f"{_LEASE}-findings"
_GRANTING: Final = (
    '{{ ((.Values.settings.ocm).clusterPermissions).serviceAccountName | default "multikueue-permissions" }}'
)
_EXTERNAL: Final = """\
{{- range $external }}
{{- $declared := ternary (dict "name" .) . (kindIs "string" .) }}
{{- $name := splitn "." 3 $declared.name }}
{{- $kind := lower $name._0 }}
{{- $ies := ternary (printf "%sies" (trimSuffix "y" $kind)) (printf "%ss" $kind) (hasSuffix "y" $kind) }}
{{- $plural := $declared.plural | default (ternary (printf "%ses" $kind) $ies (hasSuffix "s" $kind)) }}
{{- $inside := or (eq (toString $declared.statusSubresource) "false") (has (printf "%s.%s" $name._0 $name._2) $whole) }}
{{- if and (not $declared.workloadOnly) (not (hasKey $seen $declared.name)) }}
  - apiGroups: ["{{ $name._2 }}"]
    resources: ["{{ $plural }}"]
    verbs: ["list", "watch"]
  - apiGroups: ["{{ $name._2 }}"]
    resources: ["{{ $plural }}{{ ternary "" "/status" $inside }}"]
    verbs: ["patch"]
  - apiGroups: ["apiextensions.k8s.io"]
    resources: ["customresourcedefinitions"]
    verbs: ["get"]
    resourceNames: ["{{ $plural }}.{{ $name._2 }}"]
{{- end }}
{{- $_ := set $seen $declared.name true }}
{{- end }}
"""


def by_framework(rules: Callable[[JobKind], Iterable[Json]]) -> dict[str, list[Json]]:
    """By Kueue's name of a built-in framework: the rules of its kinds."""
    by_name: dict[str, list[Json]] = {}
    for kind in AVAILABLE:
        by_name.setdefault(kind.framework, []).extend(rules(kind))
    return {name: merged(made) for name, made in by_name.items() if made}


def _of_users(role: str) -> dict[str, list[Json]]:
    return by_framework(lambda kind: user_kind_rules(kind, verbs_of(role)))


def blocks() -> dict[str, str]:
    """The text of each block by its name."""
    return {
        **{name: _text(rules) for name, rules in {**ON_MANAGER, **IN_NAMESPACE}.items()},
        "frameworks": "".join(_frameworks(by_framework(kind_rules_on_manager))),
        "expired": "".join(_frameworks(by_framework(expiry_rules))),
        **{name: _text(viewer_rules()) + "".join(_frameworks(_of_users(name))) for name in AGGREGATED},
        "namespace": _text([*secret_rules(_MARKS), *findings_rules(_FINDINGS), *lease_rules(_LEASE)]),
        "bound": f"{_text(bound_rules())}{_BOUND_NAMES}",
        "dependencies": "".join(_dependencies()),
        "webhook": _text(webhook_rules('{{ include "multikueued.webhookConfiguration" . }}')),
        "certificate": _text(certificate_rules('{{ include "multikueued.webhook" . }}')),
        "external": _external(),
        "logs": _text(api_server_rules(API_SERVICE_NAME)),
        "logsown": _own_secrets(),
        "logsmarks": _text(daemon_rules(_MARKS, _FINDINGS, _LEASE)),
        "page": _text(page_rules()),
        "impersonation": _text(impersonation_rules(_GRANTING)),
        "mirrors": _text(mirroring_rules(_MIRRORS)),
        "mirrorleases": _text(node_lease_rules()),
        "mirrorkey": _text(mirror_key_rules(_MIRRORS)),
        "mirrorpolicy": _documents(mirror_policy_objects(_MIRRORS, _DAEMON)),
        "mirrorendpoint": _mirror_endpoint(),
        "mirrorsecrets": _mirror_secrets(),
    }


def _documents(objects: list[Json]) -> str:
    return yaml.safe_dump_all(objects, sort_keys=False, width=10_000)


def _mirror_endpoint() -> str:
    """What is read of pods; with a signer a certificate is asked for as well."""
    least = endpoint_rules(signed=False)
    signed = [rule for rule in endpoint_rules(signed=True) if rule not in least]
    return f"{_text(least)}{{{{- if $mirrors.signer }}}}\n{_text(signed)}{{{{- end }}}}\n"


def _mirror_secrets() -> str:
    """A certificate that somebody else writes is read only."""
    key, brought = endpoint_secret_rules(_MIRRORS, "{{ $mirrors.certificateSecret }}", brought=True)
    name = '{{ $mirrors.certificateSecret | default (printf "%s-mirrors-tls" $name) }}'
    own = endpoint_secret_rules(_MIRRORS, name, brought=False)[1]
    choice = f"{{{{- if $brought }}}}\n{_text([brought])}{{{{- else }}}}\n{_text([own])}{{{{- end }}}}\n"
    return f"{_text([key])}{choice}"


def _frameworks(by_framework: Mapping[str, list[Json]]) -> Iterator[str]:
    """Each built-in framework's rules, where the settings name it; what `auto` stands for, with that."""
    made_of_pods = {kind.framework for kind in AVAILABLE if kind.keeps_check_pending}
    yield '{{- $named := (.Values.settings.integrations).frameworks | default (list "batch/job") }}\n'
    yield '{{- $frameworks := kindIs "string" $named | ternary (list $named) $named }}\n'  # auto alone
    for name, rules in by_framework.items():
        others = [alias for alias, of in ALIASES.items() if of == name]
        named = [name, *others, *([] if name in made_of_pods else [AUTO])]
        condition = " ".join(f'(has "{name}" $frameworks)' for name in named)
        yield f"{{{{- if or {condition} }}}}\n{_text(rules)}{{{{- end }}}}\n"


def _dependencies() -> Iterator[str]:
    """The rules for each kind that is copied, where any config names it."""
    for kind in COPIED:
        named = f'{{{{- if contains (quote "{kind}") (toJson .Values.settings.dependencies) }}}}'
        yield f"{named}\n{_text(dependency_rules([kind]))}{{{{- end }}}}\n"


def _external() -> str:
    """Declared kinds' rules. Helm cannot ask an API server, so a plural that is not declared is the usual one."""
    whole = [f"{kind}.{group}" for (group, kind), profile in PROFILES.items() if profile.status_subresource is False]
    listed = " ".join(json.dumps(name) for name in whole)
    return f"{{{{- $whole := list {listed} }}}}\n{{{{- $seen := dict }}}}\n{_EXTERNAL}"


def _own_secrets() -> str:
    """The API server's own Secrets: its certificate, and one for each worker."""
    certificate = _text(own_certificate_rules('{{ include "multikueued.logs" . }}'))
    each = _text(named_secret_rules(["{{ $secret }}"]))
    return f"{certificate}{{{{- range $worker, $secret := $api.workers }}}}\n{each}{{{{- end }}}}\n"


def _text(rules: Iterable[Json]) -> str:
    return "".join(map(_rule, rules))


def _rule(rule: Json) -> str:
    lines = [
        f"  {'- ' if field == 'apiGroups' else '  '}{field}: [{', '.join(_quoted(value) for value in values)}]\n"
        for field, values in rule.items()
    ]
    return "".join(lines)


def _quoted(value: str) -> str:
    return f'"{value}"'  # names that Helm fills in hold quotation marks of their own, and no others


def written(template: str) -> str:
    """A template with its blocks as they should be.

    Raises:
        KeyError: it has a block that nobody writes.
    """
    made = blocks()
    begin = re.escape(BEGIN).replace(r"\{name\}", "([a-z]+)")
    pattern = re.compile(rf"(?ms)^( *{begin}\n).*?^( *{re.escape(END)}\n)")
    return pattern.sub(lambda match: match[1] + made[match[2]] + match[3], template)


def main() -> None:
    """Write the blocks of all templates."""
    for file in sorted(TEMPLATES.glob("*.yaml")):
        before = file.read_text()
        if (after := written(before)) != before:
            file.write_text(after)


if __name__ == "__main__":
    main()
