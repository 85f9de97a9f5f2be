"""The Secrets that the built-in access providers read: which one, for which profile, and the token in it.

Whoever writes a ClusterProfile chooses the server that gets the token. So a Secret is read only if it is known to be
for that profile: the profile owns it, or somebody who may write Secrets has labelled it for a profile of that name.
"""

from __future__ import annotations

import base64
import binascii
from typing import Final

from multikueue.core.config.access_providers import AccessProvider
from multikueue.core.config.cluster_profiles import ProfileAccess, refuse
from multikueue.core.model.kinds import CLUSTER_PROFILE
from multikueue.core.model.names import Json
from multikueue.core.model.objects import controller_of, dig, labels_of, name_of, uid
from multikueue.errors import Cause

PROFILE_LABEL: Final = "multikueue.dev/cluster-profile"
"""On a Secret: the name of the ClusterProfile that it is for."""
SYNCED_LABEL: Final = "authentication.open-cluster-management.io/synced-from"
"""On a Secret that Open Cluster Management has copied: `<managed cluster>-<managed service account>`. Its profiles have
the names of the clusters."""
TOKEN: Final = "token"
"""Where in a Secret the token is."""


def secret_name(access: ProfileAccess) -> str:
    """The Secret with the token, for a built-in provider.

    Raises:
        ClusterProfileError: the profile does not say which cluster it is.
    """
    account = access.provider.managed_service_account
    return f"{access.cluster_name}-{account}" if access.provider.builtin == "cp-creds" else access.cluster_name


def may_be_for_a_profile(secret: Json) -> bool:
    """Whether a Secret says that it is for a ClusterProfile, whichever."""
    labels = labels_of(secret)
    return PROFILE_LABEL in labels or SYNCED_LABEL in labels or _owning_profile(secret) is not None


def is_for(secret: Json, profile: Json, provider: AccessProvider) -> bool:
    """Whether a Secret is for this profile. An owner says more than labels: it is meant by its UID."""
    owner = _owning_profile(secret)
    if owner is not None:
        return bool(uid(profile)) and owner.get("uid") == uid(profile)
    labels, name = labels_of(secret), name_of(profile)
    if labels.get(PROFILE_LABEL) == name:
        return True
    account = provider.managed_service_account
    return provider.builtin == "cp-creds" and labels.get(SYNCED_LABEL) == f"{name}-{account}"


def token_in(secret: Json | None, name: str, profile: Json, provider: AccessProvider) -> str:
    """The token of a profile's Secret.

    Args:
        secret: None: there is none of that name.
        name: its namespace and name, for the message.
        profile: the ClusterProfile.
        provider: which asks for it.

    Raises:
        ClusterProfileError: there is none for this profile, or it has no token. A Secret that is for somebody else is
            told as one that is not there.
    """
    if secret is None or not is_for(secret, profile, provider):
        why = f'none is owned by ClusterProfile "{name_of(profile)}" or labelled {PROFILE_LABEL}={name_of(profile)}'
        refuse(f"getting credentials: failed to get secret {name}: {why}", Cause.NO_TOKEN)
    encoded = dig(secret, "data", TOKEN)
    if not isinstance(encoded, str) or not encoded:
        refuse(f'getting credentials: secret {name} missing "{TOKEN}" key', Cause.NO_TOKEN)
    try:
        token = base64.b64decode(encoded, validate=True).decode("ascii").strip()
    except (binascii.Error, ValueError):
        refuse(f'getting credentials: secret {name}: its key "{TOKEN}" holds no token', Cause.NO_TOKEN)
    if not token or not token.isprintable() or " " in token:
        refuse(f'getting credentials: secret {name}: its key "{TOKEN}" holds no token', Cause.NO_TOKEN)
    return token


def _owning_profile(secret: Json) -> Json | None:
    controller = controller_of(secret)
    group = str(dig(controller, "apiVersion") or "").partition("/")[0]
    is_profile = group == CLUSTER_PROFILE.gvk.group and dig(controller, "kind") == CLUSTER_PROFILE.gvk.kind
    return controller if is_profile else None
