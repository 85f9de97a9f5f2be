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
from contextlib import suppress
from typing import ClassVar, Final

import attrs
import structlog
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from multikueue.core.model.kinds import SECRET
from multikueue.core.model.names import GVK, Json, ObjectKey, Resource
from multikueue.core.model.objects import dig
from multikueue.protocols import read
from multikueue.webhook.certificates import general_name, hosts_of, make_key, private_pem, read_certificates, read_key
from multikueue.webhook.errors import UnusableError
from multikueue.webhook.rotation import is_due
from multikueued.mirror_names import NODE_PREFIX
from multikueued.serving.kept_certificate import SharedCertificate, encoded

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
class MirrorCertificate(SharedCertificate):
    """Has a certificate served, and renewed; `host` is the address by which API servers know us."""

    signer: str
    """Empty: nobody is asked."""
    is_brought: bool
    """Whether somebody else writes the Secret."""
    of: ClassVar[str] = "mirrors"

    async def keep(self) -> None:
        """See `SharedCertificate`."""
        secret = await self.client.get(SECRET, self.key)
        if self.is_brought:
            self.serve(*self._pair(secret))
        elif self.signer:
            await self._keep_signed(secret)
        else:
            await self.keep_own(secret)

    async def _keep_signed(self, secret: Json) -> None:
        with suppress(UnusableError):  # a damaged one is asked for anew, as one that is missing
            certificate, key = _field(secret, CERTIFICATE), _field(secret, KEY)
            known = read_certificates(certificate)[0]
            if self._is_for_us(known):
                self.serve(certificate, key)
                if not is_due(known, self.clock()):
                    return
        pending = _field(secret, NEXT)
        if not pending:
            pending = private_pem(make_key())
            secret = await self.write(secret, {NEXT: pending})
        signed = await self._asked_for(read_key(pending))
        self.serve(signed, pending)  # what cannot be served does not replace what can
        await self.write(secret, {CERTIFICATE: signed, KEY: pending, NEXT: None})

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
            log.info("certificate asked for", request=name, signer=self.signer, address=self.host)
        again = f"To have it asked for again: kubectl delete csr {name}"
        if signed := _text(dig(request, "status", "certificate"), f"the certificate of {name}"):
            if not self._is_for_us(read_certificates(signed)[0]):
                raise UnusableError(f"{self.signer} has signed {name}, but not for {self.host}. {again}")
            return signed
        for condition in dig(request, "status", "conditions") or ():
            if condition.get("type") in ("Denied", "Failed"):
                why = condition.get("message") or "without a reason"
                refusal = f"CertificateSigningRequest {name} is {condition['type']}: {why}"
                raise UnusableError(f"{refusal}. {again}")
        raise WaitingError(f"an administrator must approve it: kubectl certificate approve {name}")

    def _is_for_us(self, certificate: x509.Certificate) -> bool:
        """Whether a certificate is for our address; a signer may have added names."""
        return general_name(self.host) in hosts_of(certificate)

    def _request(self, key: ec.EllipticCurvePrivateKey) -> Json:
        spec = {
            "request": encoded(signing_request(key, self.host)),
            "signerName": self.signer,
            "usages": [*USAGES],
        }
        gvk = REQUEST.gvk
        metadata = {"name": request_name(key)}
        return {"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": metadata, "spec": spec}

    def _pair(self, secret: Json) -> tuple[str, str]:
        certificate, key = _field(secret, CERTIFICATE), _field(secret, KEY)
        if not certificate or not key:
            raise UnusableError(f"Secret {self.key} has no {CERTIFICATE} and {KEY}")
        return certificate, key


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
    return _text(dig(secret, "data", name), name)


def _text(value: str | None, what: str) -> str:
    try:
        return base64.b64decode(value or "").decode()
    except ValueError:
        raise UnusableError(f"{what} is not text") from None
