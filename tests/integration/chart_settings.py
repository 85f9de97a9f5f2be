"""Settings of the daemon, for the schema by which Helm takes or refuses them."""

from __future__ import annotations

from typing import Final

import yaml

from tests.daemon.test_kueue_configuration import SHIPPED
from tests.docs import settings_table

_ALONE: Final = ("dispatcher", "clusterProfile")
"""Their defaults mean something only with another dispatcher, and with ClusterProfiles."""
_DEFAULTS: Final = {name: value for name, value in settings_table.defaults().items() if name not in _ALONE}
_KUEUES: Final = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n"
_GROUPS: Final = dict.fromkeys(name for name, value in settings_table.defaults().items() if isinstance(value, dict))
SETTINGS: Final = (
    (yaml.safe_dump(_DEFAULTS), True),
    (yaml.safe_dump(_GROUPS), True),
    (SHIPPED, True),
    (_KUEUES + "multiKueue: {gcInterval: 2m, dispatcherName: example.com/mine}", True),
    (_KUEUES + "integrations: {externalFrameworks: [Fold.v1.lab.example.com]}", True),
    (_KUEUES + "multiKueue: {gcIntervall: 2m}", False),
    (_KUEUES + "multiKeue: {gcInterval: 2m}", False),
    ("featureGates: {MultiKueue: false}", False),
    ("multiKueue: {gcInterval: 2m}", False),
    ("{gcInterval: 0, integrations: {frameworks: auto}, webhook: , inventory: , namespace: }", True),
    ("gcInterval: 60", False),
    ("gcInterval: soon", False),
    ("origin: 5", False),
    ("webhook: {port: 70000}", False),
    ("webhook: {port: '9443'}", False),
    ("logging: {level: trace}", False),
    ("integrations: {frameworks: [batch/jobs]}", False),
    ("integrations: {frameworks: batch/job}", False),
    ("workerLimits: {answerSize: 16Mi, listObjects: 0}", False),
    ("ocm: {adopt: 2024}", True),
    ("ocm: {adopt: 2023}", False),
    ("externalFrameworks: [{name: Fold.v1.lab.example.com, suspendPath: .spec.stop, suspendValue: {a: 1}}]", True),
    ("externalFrameworks: [{name: Fold.v1.lab.example.com, suspendpath: .spec.stop}]", False),
    (
        "externalFrameworks: [{name: Fold.v1.lab.example.com, creationPatches: [{op: remove, path: /spec/stop}]}]",
        True,
    ),
    ("dispatcher: {name: multikueue.dev/scored, profiles: {default: {offer: {retry: 30s}, scores: {cost: 5}}}}", True),
    ("dispatcher: {name: multikueue.dev/scored, profiles: {default: {offers: {retry: 30s}}}}", False),
    ("dispatcher: {name: multikueue.dev/scored, profiles: {default: {scores: {costs: 5}}}}", False),
    ("dispatcher: {name: multikueue.dev/scored, profiles: {default: {giveUp: {after: 1h, then: Give up}}}}", False),
    ("clusterProfile: {accessProviders: [{name: ocm, builtin: cp-creds}]}", True),
    ("clusterProfile: {accessProviders: [{name: ocm, builtin: cp-cred}]}", False),
    ("clusterProfile: {accessProvider: [{name: ocm, builtin: cp-creds}]}", False),
)
"""Settings, and whether the daemon takes them."""
