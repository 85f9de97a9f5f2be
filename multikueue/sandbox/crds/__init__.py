"""The CustomResourceDefinitions of Kueue's kinds, as much of them as the sandbox needs.

Written by us, smaller than Kueue's own: no descriptions, and pod templates are opaque. What decides how an API server
treats a write is the same: list types and map keys (server-side apply merges by them), enums, defaults, the CEL rules
of `clusterName` and of what is immutable under quota, the status subresource and the printer columns. One rule is not
in Kueue's definition but in its webhook: that `clusterName` can only become what was nominated before.

The folder `ocm` has those of Open Cluster Management, and the ClusterProfile: only the fields that our controllers read
or write. A sandbox serves them if it is asked to.
"""

from __future__ import annotations

from functools import cache
from importlib import resources

import orjson
import yaml

from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver.status_errors import StatusError
from multikueue.sandbox.apiserver.verbs.registry import Registry


def load_crds() -> list[Json]:
    """Kueue's definitions, in the order of their names; each call returns objects of its own."""
    definitions: list[Json] = orjson.loads(_definitions(""))
    return definitions


def load_ocm_crds() -> list[Json]:
    """Those of Open Cluster Management and the ClusterProfile, in the same way."""
    definitions: list[Json] = orjson.loads(_definitions("ocm"))
    return definitions


def install_ocm(registry: Registry) -> None:
    """Have a server serve the kinds of Open Cluster Management and ClusterProfiles; those that it serves stay.

    Raises:
        StatusError: a definition is not valid.
    """
    for definition in load_ocm_crds():
        try:
            registry.create_object(definition)
        except StatusError as error:
            if error.reason != "AlreadyExists":
                raise


@cache
def _definitions(folder: str) -> bytes:
    """The files as one JSON text: reading YAML takes a tenth of a second, and a fleet loads them for each cluster."""
    place = resources.files(__name__).joinpath(folder)
    files = (file for file in place.iterdir() if file.name.endswith(".yaml"))
    texts = [file.read_text(encoding="utf-8") for file in sorted(files, key=lambda file: file.name)]
    return orjson.dumps([yaml.safe_load(text) for text in texts])
