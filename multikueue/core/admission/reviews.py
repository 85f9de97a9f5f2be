"""AdmissionReview `admission.k8s.io/v1`: what an API server asks of a webhook, and how it is answered."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any, Final

import attrs

from multikueue.core.model.names import GVK, Json
from multikueue.core.model.objects import dig

API_VERSION: Final = "admission.k8s.io/v1"
KIND: Final = "AdmissionReview"
MAX_WARNING: Final = 256
"""Characters of one warning: API servers cut longer ones."""


class BadReviewError(ValueError):
    """The request is not an AdmissionReview that can be answered; the message says why."""


@attrs.frozen
class Review:
    """One question: may this object be written, and as it is?"""

    uid: str
    """Of the question; the answer repeats it."""
    gvk: GVK
    """Of the object, in the version the webhook asked for."""
    operation: str
    """`CREATE`, `UPDATE`, `DELETE` or `CONNECT`."""
    subresource: str
    """`status`, `scale`, ...; empty for the object itself."""
    namespace: str
    """The object may lack it while it is being created."""
    object: Json | None
    """The object as it would be written; None for deletions."""


def parse_review(document: Any) -> Review:
    """Read a question.

    Raises:
        BadReviewError: it is none, or of another version.
    """
    if not isinstance(document, dict):
        raise BadReviewError("the body is not a JSON object")
    sent = f"{document.get('apiVersion')} {document.get('kind')}"
    if sent != f"{API_VERSION} {KIND}":
        raise BadReviewError(f"expected {API_VERSION} {KIND}, got {sent[:100]}: list v1 in admissionReviewVersions")
    request = document.get("request")
    uid, kind = dig(request, "uid"), dig(request, "kind")
    if not isinstance(request, dict) or not isinstance(uid, str) or not uid or not isinstance(kind, dict):
        raise BadReviewError("the AdmissionReview has no request with a uid and a kind")
    obj = request.get("object")
    return Review(
        uid=uid,
        gvk=GVK(_text(kind, "group"), _text(kind, "version"), _text(kind, "kind")),
        operation=_text(request, "operation"),
        subresource=_text(request, "subResource"),
        namespace=_text(request, "namespace"),
        object=obj if isinstance(obj, dict) else None,
    )


def allowed(review: Review, patch: Sequence[Json] = (), warning: str = "") -> Json:
    """The answer "yes".

    Args:
        review: the question.
        patch: a JSON patch (RFC 6902) to apply to the object first.
        warning: what `kubectl` shows to whoever writes the object.
    """
    response: Json = {"uid": review.uid, "allowed": True}
    if patch:
        raw = json.dumps(list(patch), separators=(",", ":")).encode()
        response |= {"patchType": "JSONPatch", "patch": base64.b64encode(raw).decode()}
    if warning:
        response["warnings"] = [warning[:MAX_WARNING]]
    return {"apiVersion": API_VERSION, "kind": KIND, "response": response}


def _text(obj: Json, field: str) -> str:
    value = obj.get(field)
    return value if isinstance(value, str) else ""
