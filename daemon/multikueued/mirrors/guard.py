"""Whether the policy that mirrors need is in force: without it none are made."""

from __future__ import annotations

from multikueue.core.model.names import ObjectKey
from multikueue.core.model.objects import dig
from multikueue.errors import Forbidden
from multikueue.protocols import Reader, read
from multikueued.rbac.policies import POLICY, TAKING


async def why_unguarded(client: Reader, name: str) -> str | None:
    """Why no mirror may be made; None: the policy is there, and refuses.

    Args:
        client: of the manager cluster.
        name: of the ValidatingAdmissionPolicy and of its binding.

    Raises:
        ApiError: the manager does not answer.
    """
    key, print_it = ObjectKey("", name), "apply what multikueue rbac manager prints"
    try:
        policy, binding = await read(client, POLICY, key), await read(client, TAKING, key)
    except Forbidden:
        return f"ValidatingAdmissionPolicy {name} may not be read, so nobody knows whether it is in force: {print_it}"
    if policy is None or dig(policy, "spec", "failurePolicy") not in (None, "Fail"):
        return f"ValidatingAdmissionPolicy {name} is not there, or lets through what it cannot judge: {print_it}"
    bound = dig(binding, "spec", "policyName") == name and "Deny" in (dig(binding, "spec", "validationActions") or ())
    if not bound or dig(binding, "spec", "matchResources") or dig(binding, "spec", "paramRef"):
        return f"ValidatingAdmissionPolicyBinding {name} is not there, or does not refuse everywhere: {print_it}"
    return None
