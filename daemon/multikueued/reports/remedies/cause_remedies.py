"""The remedies for what is wrong with a worker, or with a job there, by the cause that an object tells. No message is
read.

The names in them are those of the MultiKueueCluster: `{secret}`, `{profile}`, and what a cause is about: `{kind}` and
`{name}` of what a job needs, `{resource}`, ... Words of others may lead to some of them, see `remedy_table`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from multikueue.core.dispatchers.reasons import Why
from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig
from multikueue.errors import Cause
from multikueued.reports.remedies.remedy import RETRY, Remedy

WORKER_NAMES: Final = "UnusableNames"
WORKER_IS_MANAGER: Final = "WorkerIsManager"
NEVER_TRIED: Final = "NeverTried"
CORDONED: Final = "Cordoned"
SECOND_NAME: Final = "SecondName"
NO_NAMESPACE: Final = "NamespaceUnnamed"

_AGAIN: Final = "it is asked again by itself within five minutes, at once after multikueue retry {job} -n {namespace}"

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
        SECOND_NAME: Remedy(
            "second-name",
            "{worker} leads to a cluster that another MultiKueueCluster comes first of: it is offered nothing new",
            "remove one of the two: multikueue worker remove {worker}; clusters made from one image are told apart by "
            "the annotation multikueue.dev/different-from on MultiKueueCluster {worker}, with the other one's name",
            blocking=False,
        ),
        Cause.PLUGIN: Remedy(
            "credential-plugin",
            "the credential plugin for {worker} gives none: {told}",
            "run its command as the settings name it, where the daemon runs, with KUBERNETES_EXEC_INFO set; the "
            "daemon's log has the beginning of what it writes to standard error",
        ),
        Cause.BAD_TOKEN: Remedy(
            "bad-token",
            "{worker} does not accept the daemon's credential: the token is wrong, expired or revoked",
            "make a new one on {worker} and write it into the Secret of its kubeconfig: multikueue worker rotate "
            "{worker} --worker-context CONTEXT; with a ClusterProfile, whoever manages that has to; the daemon notices "
            "by itself",
        ),
        Cause.CERTIFICATE: Remedy(
            "untrusted-certificate",
            "the certificate of {worker} is not trusted",
            "put its CA into certificate-authority-data of the kubeconfig; if the CA is right, compare the clocks of "
            "both sides with the certificate's dates",
        ),
        Cause.HOST_NAME: Remedy(
            "name-lookup",
            "the address of {worker} cannot be resolved from where the daemon runs",
            "correct server in the kubeconfig of {worker}, or the daemon's DNS",
        ),
        Cause.NO_ANSWER: Remedy(
            "worker-hung",
            "{worker} accepts connections and answers nothing",
            "look after its API server and etcd; it is asked again by itself every minute",
            side="worker",
        ),
        Cause.OUT_OF_REACH: Remedy(
            "worker-down",
            "{worker} cannot be reached",
            "look whether its API server runs, and whether the daemon may connect to it (address, firewall, "
            "NetworkPolicy); it is asked again by itself, at least every minute",
            side="worker",
        ),
        Cause.UNREADABLE: Remedy(
            "answers-unreadable",
            "{worker} answers with more than the daemon reads",
            "remove leftovers there, or raise workerLimits in the daemon's settings",
            side="worker",
        ),
        Cause.NOT_SERVED: Remedy(
            "crd-missing",
            "{worker} does not serve a kind that is needed there: {told}",
            "install it there (Kueue for workloads.kueue.x-k8s.io, else the CRD and controller of the job's kind), in "
            "the version of this cluster; the daemon notices by itself",
            side="worker",
        ),
        Cause.FIELD_MISSING: Remedy(
            "crd-field",
            "the CustomResourceDefinition of the job's kind on {worker} is too old, or another one: {told}",
            "install there the version that this cluster has; it is read again every five minutes",
            side="worker",
        ),
        Why.NO_LOCAL_QUEUE: Remedy(
            "local-queue-missing",
            'LocalQueue "{missing}" does not exist in namespace "{namespace}" on {worker}',
            "make it there: {command}; the job is then taken by itself",
            command="multikueue queues mirror {queue} -n {namespace} --worker-context {worker} --worker {worker}",
            object="LocalQueue {namespace}/{queue}",
            side="worker",
        ),
        Why.QUEUE_INACTIVE: Remedy(
            "queue-inactive",
            "{kind} {name} on {worker} takes no jobs",
            "look at its condition Active there: {command}",
            command="kubectl --context {worker} -n {namespace} get {kind} {name} -o yaml",
            object="{kind} {name} on {worker}",
            side="worker",
        ),
        Why.NEVER_FITS: Remedy(
            "quota-too-small",
            "the job asks for more {resource} than its ClusterQueue on {worker} has in all",
            "raise nominalQuota of {resource} there, or request less: it never fits as it is",
            object="{namespace}/{job}",
            side="worker",
        ),
        Cause.NAME_TAKEN: Remedy(
            "name-taken",
            "another object has the job's name on {worker}",
            "if it is not needed: kubectl --context {worker} -n {namespace} delete {job}; else create the job here "
            "under another name; " + RETRY,
            side="worker",
        ),
        Cause.NEED_UNREAD: Remedy(
            "dependency-unread",
            "the daemon may not read {kind} {name} of the job's namespace here",
            "grant it here: multikueue rbac manager --config FILE | kubectl apply -f -; " + _AGAIN,
        ),
        Cause.NEED_NOWHERE: Remedy(
            "dependency-nowhere",
            "the job's pods name {kind} {name}, which is neither here nor on {worker}",
            "create it in namespace {namespace} here, where it is copied from; " + _AGAIN,
        ),
        Cause.NEED_NOT_COPIED: Remedy(
            "dependency-not-copied",
            "the job's pods name {kind} {name}, which is not on {worker}",
            "create it in the job's namespace on {worker}; " + _AGAIN,
            side="worker",
        ),
        Cause.NEED_IN_USE: Remedy(
            "dependency-in-use",
            "on {worker} the job of Workload {user} runs with another content of {kind} {name}",
            "nothing: it goes there after that job, or elsewhere; to run beside it, give the new content another name",
            blocking=False,
        ),
        Cause.NEED_FOREIGN: Remedy(
            "dependency-foreign",
            "on {worker} somebody else has made or changed {kind} {name}",
            "use another name here; or, if it is not needed there: kubectl --context {worker} -n {namespace} delete "
            "{kind} {name}; " + _AGAIN,
        ),
        Cause.NEED_GOING: Remedy(
            "dependency-going",
            "{kind} {name} of an earlier job is still on {worker}",
            "nothing, if that job has just ended; else look after its Workload, and the garbage collector, of {worker}",
            blocking=False,
            side="worker",
        ),
        Cause.NEED_TOO_MUCH: Remedy(
            "dependency-too-much",
            "more would have to be copied to {worker} than is: {told}",
            "put it into fewer or smaller objects, or into a volume",
        ),
        Cause.SHARE_USED_UP: Remedy(
            "share-used-up",
            "its namespace has as much on {worker} as one may have there",
            "it follows by itself once jobs of that namespace have ended or are deleted; smaller or fewer jobs leave "
            "room, and workerLimits.listSize and workerLimits.listObjects of the daemon's settings are the bounds",
        ),
    }
)
"""By cause: a `Cause`, why the scored dispatcher leaves a worker out, or one of those above."""


def source_names(cluster: Json | None) -> dict[str, str]:
    """What remedies fill in of how a MultiKueueCluster says that its worker is reached."""
    source = dig(cluster or {}, "spec", "clusterSource")
    return {
        "secret": str(dig(source, "kubeConfig", "location") or ""),
        "profile": str(dig(source, "clusterProfileRef", "name") or ""),
    }
