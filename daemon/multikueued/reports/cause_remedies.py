"""The remedies for what is wrong with how a worker is reached, by the cause that its MultiKueueCluster tells.

The names in them are those of the MultiKueueCluster: `{secret}`, `{profile}`. No message is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig
from multikueue.errors import Cause
from multikueued.reports.remedies import Remedy

WORKER_NAMES: Final = "UnusableNames"
WORKER_IS_MANAGER: Final = "WorkerIsManager"
NEVER_TRIED: Final = "NeverTried"
CORDONED: Final = "Cordoned"
NO_NAMESPACE: Final = "NamespaceUnnamed"

BY_CAUSE: Final[Mapping[str, Remedy]] = MappingProxyType(
    {
        Cause.KEY_MISSING: Remedy(
            "kubeconfig-key",
            'Secret "{secret}" has no key "kubeconfig"',
            "write the kubeconfig under that key: kubectl -n {secrets} create secret generic {secret} "
            "--from-file=kubeconfig=FILE --dry-run=client -o yaml | kubectl apply -f -",
        ),
        Cause.SECRET_MISSING: Remedy(
            "kubeconfig-secret",
            'there is no Secret "{secret}" in the daemon\'s namespace',
            "create it there with the kubeconfig under the key kubeconfig: kubectl -n {secrets} create secret generic "
            "{secret} --from-file=kubeconfig=FILE; or correct spec.clusterSource of MultiKueueCluster {worker}",
        ),
        Cause.PROFILES_OFF: Remedy(
            "cluster-profile-off",
            "the daemon's settings say nothing of ClusterProfiles",
            "name the access providers that may be used in clusterProfile.accessProviders of the settings, or name a "
            "Secret with a kubeconfig in spec.clusterSource.kubeConfig of MultiKueueCluster {worker}",
        ),
        Cause.PROFILE_MISSING: Remedy(
            "cluster-profile-missing",
            'there is no ClusterProfile "{profile}" in the daemon\'s namespace',
            "kubectl -n {secrets} get clusterprofiles shows those there are; with Open Cluster Management a "
            "ManagedClusterSetBinding in that namespace has them made; or correct spec.clusterSource of "
            "MultiKueueCluster {worker}",
        ),
        Cause.PROFILES_UNREAD: Remedy(
            "cluster-profiles-unread",
            "the daemon cannot read ClusterProfiles: {told}",
            "install their CustomResourceDefinition (of the Cluster Inventory API, version v1alpha1), and let the "
            "daemon list and watch them: multikueue rbac manager prints the rules; it is asked again within "
            "half a minute",
        ),
        Cause.PROFILE_UNREADABLE: Remedy(
            "cluster-profile-unreadable",
            'ClusterProfile "{profile}" cannot be read: {told}',
            "have what manages it write it anew: kubectl -n {secrets} get clusterprofile {profile} -o yaml",
        ),
        Cause.NO_PROVIDER: Remedy(
            "cluster-profile-no-provider",
            "the daemon's settings name no access provider that could be used",
            "add it with execConfig or builtin to clusterProfile.accessProviders of the settings",
        ),
        Cause.OTHER_PROVIDER: Remedy(
            "cluster-profile-other-provider",
            'ClusterProfile "{profile}" has none of the access providers of the settings',
            "compare the names in clusterProfile.accessProviders of the settings with status.accessProviders of "
            "kubectl -n {secrets} get clusterprofile {profile} -o yaml: empty, its manager has not written them yet",
        ),
        Cause.UNNAMED: Remedy(
            "cluster-profile-name",
            "the ClusterProfile does not say which cluster it is, so no Secret can be found",
            "have its manager write clusterName into the extension client.authentication.k8s.io/exec of the provider",
        ),
        Cause.NO_TOKEN: Remedy(
            "cluster-profile-token",
            'there is no token for ClusterProfile "{profile}": {told}',
            "have its manager write it: under the key token, in a Secret that the ClusterProfile owns as controller, "
            "or that has the label multikueue.dev/cluster-profile with its name; the daemon notices by itself",
        ),
        Cause.ADDITIONS: Remedy(
            "cluster-profile-additions",
            "the ClusterProfile asks for arguments or variables in a form that is none: {told}",
            "correct that extension, or leave profileSourcedCLIArgsPolicy and profileSourcedEnvVarsPolicy at Ignore",
        ),
        Cause.CONTENT: Remedy(
            "kubeconfig-refused",
            "the daemon does not take the kubeconfig of {worker}, or what its ClusterProfile says",
            "correct what it names; certificates and the token must be in the file itself, without paths, plugins, "
            "basic auth or insecure-skip-tls-verify, and the server an https:// address",
        ),
        WORKER_NAMES: Remedy(
            "worker-names",
            "nobody knows how {worker} calls namespaces or queues",
            "correct the annotation on MultiKueueCluster {worker}; what runs there goes on meanwhile",
        ),
        WORKER_IS_MANAGER: Remedy(
            "worker-is-manager",
            "{worker} is this cluster itself, and copies would have the names of what they are made of",
            "give its namespaces other names: annotate MultiKueueCluster {worker} with multikueue.dev/namespaces, with "
            "namespaces that only hold copies; docs/manager-as-worker.md",
        ),
        NEVER_TRIED: Remedy(
            "connecting",
            "the daemon has not heard of {worker} yet",
            "nothing, if the daemon has just started; else look whether it runs",
            blocking=False,
        ),
        NO_NAMESPACE: Remedy(
            "namespace-unnamed",
            "{worker} has no namespace for it",
            "name it in the annotation multikueue.dev/namespaces of MultiKueueCluster {worker}, if its jobs may run "
            "there",
            blocking=False,
        ),
        CORDONED: Remedy(
            "cordoned",
            "{worker} is cordoned: it is offered nothing new",
            "multikueue worker uncordon {worker}, if that is over",
        ),
    }
)
"""By cause: a `Cause`, or one of those above."""


def source_names(cluster: Json | None) -> dict[str, str]:
    """What remedies fill in of how a MultiKueueCluster says that its worker is reached."""
    source = dig(cluster or {}, "spec", "clusterSource")
    return {
        "secret": str(dig(source, "kubeConfig", "location") or ""),
        "profile": str(dig(source, "clusterProfileRef", "name") or ""),
    }
