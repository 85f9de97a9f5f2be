"""The endpoint's certificate, in a Secret that all replicas share: brought by somebody, signed, or our own.

* `certificateSecret` alone: somebody else writes and renews it.
* `signer`: asked for by a CertificateSigningRequest, which an administrator approves. The key waits in the Secret
  meanwhile, so that a restart asks for nothing new.
* neither: it is signed by an authority of our own, which is enough for API servers that check no kubelet's certificate
  (without `--kubelet-certificate-authority`).
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from datetime import datetime
from typing import Final

import attrs
import structlog
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from multikueue.core.model.kinds import SECRET
from multikueue.core.model.names import GVK, Json, ObjectKey, Resource
from multikueue.core.model.objects import dig, resource_version
from multikueue.protocols import ApiClient, read
from multikueue.webhook.certificate_secret import credentials_in
from multikueue.webhook.certificates import (
    UnusableError,
    general_name,
    is_for,
    make_key,
    pem,
    private_pem,
    read_certificates,
    read_key,
)
from multikueue.webhook.rotation import is_due, renewed
from multikueued.mirror_names import NODE_PREFIX
from multikueued.mirrors.endpoint.callers import KubeletTls
from multikueued.serving.kept_certificate import keep_certificate

REQUEST: Final = Resource(
    GVK("certificates.k8s.io", "v1", "CertificateSigningRequest"), "certificatesigningrequests", namespaced=False
)
USAGES: Final = ("digital signature", "server auth")
"""What `kubernetes.io/kubelet-serving` signs for a key of an elliptic curve."""
GROUP: Final = "system:nodes"
USER: Final = f"system:node:{NODE_PREFIX}mirrors"
"""One for all our Nodes: API servers look at the address alone."""
CERTIFICATE, KEY, NEXT = "tls.crt", "tls.key", "next.key"
"""Fields of the Secret; the last has the key of a certificate that is asked for."""

log = structlog.get_logger(__name__)


class WaitingError(UnusableError):
    """There is no certificate yet; the message says whom it waits for."""


@attrs.define(eq=False)
class MirrorCertificate:
    """Has a certificate served, and renewed."""

    client: ApiClient
    key: ObjectKey
    """The Secret."""
    address: str
    """By which API servers know us."""
    signer: str
    """Empty: nobody is asked."""
    is_brought: bool
    """Whether somebody else writes the Secret."""
    tls: KubeletTls
    clock: Callable[[], datetime]
    _served: str = attrs.field(default="", init=False)

    async def run(self) -> None:
        """Keep it until cancelled. What fails, or waits, is told once, and tried again."""
        await keep_certificate(self.keep, self.key, "mirrors")

    async def keep(self) -> None:
        """Serve the certificate, and have it renewed if that is due.

        Raises:
            ApiError: an object cannot be read or written.
            UnusableError: there is none that can be served.
        """
        secret = await self.client.get(SECRET, self.key)
        if self.is_brought:
            self._serve(_field(secret, CERTIFICATE), _field(secret, KEY))
        elif self.signer:
            await self._keep_signed(secret)
        else:
            known = credentials_in(secret)
            wanted = renewed(known, self.address, self.clock(), known.bundle if known else "")
            if wanted is not None:
                await self._write(secret, dict(wanted.written()))
            credentials = wanted or known
            assert credentials is not None, "without a certificate one is made"
            self._serve(pem(credentials.serving.certificate), credentials.serving.key_pem)

    async def _keep_signed(self, secret: Json) -> None:
        certificate, key = _field(secret, CERTIFICATE), _field(secret, KEY)
        if certificate and key and is_for(read_certificates(certificate)[0], self.address):
            self._serve(certificate, key)
            if not is_due(read_certificates(certificate)[0], self.clock()):
                return
        pending = _field(secret, NEXT)
        if not pending:
            pending = private_pem(make_key())
            secret = await self._write(secret, {NEXT: pending})
        signed = await self._asked_for(read_key(pending))
        await self._write(secret, {CERTIFICATE: signed, KEY: pending, NEXT: None})
        self._serve(signed, pending)

    async def _asked_for(self, key: ec.EllipticCurvePrivateKey) -> str:
        """The certificate that was signed for a key.

        Raises:
            WaitingError: it is not signed yet.
            UnusableError: it will not be.
        """
        name = request_name(key)
        request = await read(self.client, REQUEST, ObjectKey("", name))
        if request is None:
            request = await self.client.create(REQUEST, self._request(key))
            log.info("certificate asked for", request=name, signer=self.signer, address=self.address)
        if signed := dig(request, "status", "certificate"):
            return base64.b64decode(str(signed)).decode()
        for condition in dig(request, "status", "conditions") or ():
            if condition.get("type") in ("Denied", "Failed"):
                why = condition.get("message") or "without a reason"
                refusal = f"CertificateSigningRequest {name} is {condition['type']}: {why}"
                raise UnusableError(f"{refusal}. To have it asked for again: kubectl delete csr {name}")
        raise WaitingError(f"an administrator must approve it: kubectl certificate approve {name}")

    def _request(self, key: ec.EllipticCurvePrivateKey) -> Json:
        spec = {
            "request": base64.b64encode(signing_request(key, self.address).encode()).decode(),
            "signerName": self.signer,
            "usages": [*USAGES],
        }
        gvk = REQUEST.gvk
        metadata = {"name": request_name(key)}
        return {"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": metadata, "spec": spec}

    async def _write(self, secret: Json, fields: dict[str, str | None]) -> Json:
        data = {
            name: None if text is None else base64.b64encode(text.encode()).decode() for name, text in fields.items()
        }
        precondition = {"resourceVersion": resource_version(secret)}  # of two replicas one writes
        return await self.client.merge_patch(SECRET, self.key, {"metadata": precondition, "data": data})

    def _serve(self, certificate: str, key: str) -> None:
        if not certificate or not key:
            raise UnusableError(f"Secret {self.key} has no {CERTIFICATE} and {KEY}")
        if certificate != self._served:
            self.tls.load(certificate, key)
            self._served = certificate
            log.info(
                "certificate for mirrors served", until=f"{read_certificates(certificate)[0].not_valid_after_utc:%F}"
            )


def request_name(key: ec.EllipticCurvePrivateKey) -> str:
    """Of the CertificateSigningRequest for a key: two replicas, and a restart, ask with the same one."""
    public = key.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return f"{NODE_PREFIX}mirrors-{hashlib.sha256(public).hexdigest()[:16]}"


def signing_request(key: ec.EllipticCurvePrivateKey, address: str) -> str:
    """A request as a kubelet makes it, for this address; PEM."""
    subject = [(NameOID.ORGANIZATION_NAME, GROUP), (NameOID.COMMON_NAME, USER)]
    made = (
        x509.CertificateSigningRequestBuilder()
        .subject_name(x509.Name([x509.NameAttribute(of, value) for of, value in subject]))
        .add_extension(x509.SubjectAlternativeName([general_name(address)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    return made.public_bytes(serialization.Encoding.PEM).decode()


def _field(secret: Json, name: str) -> str:
    try:
        return base64.b64decode(dig(secret, "data", name) or "").decode()
    except ValueError:
        raise UnusableError(f"{name} is not text") from None
