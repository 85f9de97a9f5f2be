"""The remedies for workers that ClusterProfiles describe: rows of `remedy_table`."""

from __future__ import annotations

from typing import Final

from multikueued.reports.remedies import row

PROFILE_RULES: Final = (
    row(
        "cluster-profile-off",
        r"MultiKueueClusterProfile feature gate is disabled",
        "the daemon's settings say nothing of ClusterProfiles",
        "name the access providers that may be used in clusterProfile.accessProviders of the settings, or name a "
        "Secret with a kubeconfig in spec.clusterSource.kubeConfig of MultiKueueCluster {worker}",
        own=True,
    ),
    row(
        "cluster-profile-missing",
        r'ClusterProfile\.multicluster\.x-k8s\.io "(?P<profile>[^"]*)" not found',
        'there is no ClusterProfile "{profile}" in the daemon\'s namespace',
        "kubectl -n {secrets} get clusterprofiles shows those there are; with Open Cluster Management a "
        "ManagedClusterSetBinding in that namespace has them made; or correct spec.clusterSource of MultiKueueCluster "
        "{worker}",
        own=True,
    ),
    row(
        "cluster-profiles-unread",
        r"clusterprofiles\.multicluster\.x-k8s\.io cannot be read: (?P<why>.*)",
        "the daemon cannot read ClusterProfiles: {why}",
        "install their CustomResourceDefinition (of the Cluster Inventory API, version v1alpha1), and let the daemon "
        "list and watch them: multikueue rbac manager prints the rules; it is asked again within half a minute",
        own=True,
    ),
    row(
        "cluster-profile-unreadable",
        r'ClusterProfile "(?P<profile>[^"]*)" cannot be read: (?P<why>.*)',
        'ClusterProfile "{profile}" cannot be read: {why}',
        "have what manages it write it anew: kubectl -n {secrets} get clusterprofile {profile} -o yaml",
        own=True,
    ),
    row(
        "cluster-profile-no-provider",
        r"no access provider configured|no exec config found for provider",
        "the daemon's settings name no access provider that could be used",
        "add it with execConfig or builtin to clusterProfile.accessProviders of the settings",
        own=True,
    ),
    row(
        "cluster-profile-other-provider",
        r'no matching cluster accessor found for cluster profile "(?P<profile>[^"]*)"',
        'ClusterProfile "{profile}" has none of the access providers of the settings',
        "compare the names in clusterProfile.accessProviders of the settings with status.accessProviders of kubectl -n "
        "{secrets} get clusterprofile {profile} -o yaml: empty, its manager has not written them yet",
        own=True,
    ),
    row(
        "cluster-profile-name",
        r"ExecCredential\.Spec\.Cluster\.Config",
        "the ClusterProfile does not say which cluster it is, so no Secret can be found",
        "have its manager write clusterName into the extension client.authentication.k8s.io/exec of the provider",
        own=True,
    ),
    row(
        "cluster-profile-token",
        r"getting credentials: (?:failed to get )?secret (?P<secret>[^:\s]+)",
        "there is no token for the ClusterProfile in Secret {secret}",
        "have its manager write it: under the key token, in a Secret that the ClusterProfile owns as controller, or "
        "that has the label multikueue.dev/cluster-profile with its name; the daemon notices by itself",
        own=True,
    ),
    row(
        "cluster-profile-additions",
        r"failed to unmarshal additional",
        "the ClusterProfile asks for arguments or variables in a form that is none: {told}",
        "correct that extension, or leave profileSourcedCLIArgsPolicy and profileSourcedEnvVarsPolicy at Ignore",
        own=True,
    ),
    row(
        "credential-plugin",
        r"\Agetting credentials: ",  # a worker's words stand behind its name, the verb and the resource
        "the credential plugin for {worker} gives none: {told}",
        "run its command as the settings name it, where the daemon runs, with KUBERNETES_EXEC_INFO set; the "
        "daemon's log has the beginning of what it writes to standard error",
    ),
)
