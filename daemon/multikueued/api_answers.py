"""The API of the manager that our server serves: its names, and how lines of its own begin in a log. Pure."""

from __future__ import annotations

from typing import Final

from multikueue.core.model.names import GVK, Resource

GROUP: Final = "remote.multikueue.dev"
VERSION: Final = "v1alpha1"
REMOTE_JOB: Final = Resource(GVK(GROUP, VERSION, "RemoteJob"), "remotejobs")
SUBRESOURCE: Final = "log"
"""API servers end requests after a minute, except for some subresources: this name is one of theirs."""
PARTS: Final = (SUBRESOURCE, "pods", "events", "explain")
"""All subresources of a job."""
WHOLE: Final = {
    "overview": "Overview",
    "timeline": "Timeline",
    "places": "Places",
    "causes": "Causes",
    "jobpage": "JobPage",
}
"""What is made of all jobs of a namespace, or of the fleet: the kind by the name in a path."""
API_SERVICE: Final = Resource(GVK("apiregistration.k8s.io", "v1", "APIService"), "apiservices", namespaced=False)
API_SERVICE_NAME: Final = f"{VERSION}.{GROUP}"
LOG_PATH: Final = f"/apis/{GROUP}/{VERSION}/namespaces/{{namespace}}/{REMOTE_JOB.plural}/{{name}}/{SUBRESOURCE}"
NOTE: Final = "--- multikueue: "
"""How lines of the server's own begin: those of a job have their time before anything else, if times are asked for."""
END: Final = "this ends here: "
"""How the note begins that says why an answer has no more."""
