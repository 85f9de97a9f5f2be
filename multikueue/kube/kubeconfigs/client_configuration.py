"""kubernetes-asyncio at the border: its `Configuration` or `ApiClient` as our value, and the way back.

Its loaders are not used (36.1, tried): they let tokens of exec plugins expire, refresh OIDC tokens without verifying
TLS, and ignore `as`. Importing it takes 1.5 s of CPU and 77 MB, so it is imported where one of its objects is made.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias, TypeGuard, cast

from multikueue.errors import KubeconfigError
from multikueue.kube.kubeconfigs.config import REASON, CertificateFiles, ClusterConfig, Headers, TokenHook
from multikueue.kube.named_files import named_text

if TYPE_CHECKING:
    from kubernetes_asyncio.client import ApiClient, Configuration

Given: TypeAlias = "ClusterConfig | Configuration | ApiClient"
"""How callers may say where an API server is."""

_TOKEN: Final = "BearerToken"
"""The entry of `api_key` that API servers take."""
_GENERATED: Final = "OpenAPI-Generator/"
"""What the `User-Agent` of an `ApiClient` begins with by default. Ours is the field manager of our writes."""


def is_configuration(given: object) -> TypeGuard[Given]:
    """Whether this says where an API server is, and is no client of ours. Nothing is imported to find out."""
    return isinstance(given, ClusterConfig) or hasattr(given, "api_key") or hasattr(given, "default_headers")


def cluster_config(given: Given) -> ClusterConfig:
    """Copy what is given into our value, once: what is changed there afterwards has no effect.

    Of an `ApiClient` its `configuration` and `default_headers` count. `connection_pool_maxsize` and `retries` do not:
    see `ClientOptions`. Files are read when a client opens.

    Raises:
        KubeconfigError: it asks for what API servers or this client cannot do.
        TypeError: `given` is something else, as a path.
    """
    if not is_configuration(given):
        wanted = "a ClusterConfig, Configuration or ApiClient"
        raise TypeError(f"config: {wanted}, not {type(given).__name__}: load_kubeconfig makes one of a file")
    if isinstance(given, ClusterConfig):
        return given
    configuration = cast("Configuration", getattr(given, "configuration", given))
    if configuration.username or configuration.password:
        raise KubeconfigError(REASON, "Configuration: basic auth is not supported, by API servers neither")
    value = "" if configuration.refresh_api_key_hook else _authorization(configuration)
    scheme, space, token = value.partition(" ")
    bearer = space and scheme.lower() == "bearer"
    headers = _headers(getattr(given, "default_headers", None))
    return ClusterConfig(
        server=(configuration.host or "").rstrip("/"),
        token=token if bearer else "",
        token_hook=_hook(configuration),
        headers=headers if bearer or not value else (*headers, ("Authorization", value)),
        files=CertificateFiles(
            str(configuration.ssl_ca_cert or ""), str(configuration.cert_file or ""), str(configuration.key_file or "")
        ),
        tls_server_name=configuration.tls_server_name or "",
        proxy=configuration.proxy or "",
        proxy_headers=_headers(configuration.proxy_headers),
        verify_tls=_flag(configuration, "verify_ssl"),
        strict_tls=not _flag(configuration, "disable_strict_ssl_verification"),
        source="Configuration",
    )


def _flag(configuration: Configuration, name: str) -> bool:
    value = getattr(configuration, name)
    if not isinstance(value, bool):
        raise KubeconfigError(REASON, f"Configuration: {name} is neither True nor False")
    return value


def _hook(configuration: Configuration) -> TokenHook | None:
    hook = cast("Callable[[Configuration], object] | None", configuration.refresh_api_key_hook)
    if hook is None:
        return None

    async def ask() -> str:
        answer = hook(configuration)
        if inspect.isawaitable(answer):
            await answer
        return _authorization(configuration)

    return TokenHook(ask, configuration)


def _authorization(configuration: Configuration) -> str:
    """The value of the header, without asking the hook: `get_api_key_with_prefix` does, and takes coroutines only."""
    key, prefix = configuration.api_key.get(_TOKEN), configuration.api_key_prefix.get(_TOKEN)
    return f"{prefix} {key}" if prefix and key else str(key or "").strip()


def _headers(given: Mapping[str, object] | None) -> Headers:
    headers = {name: str(value) for name, value in (given or {}).items()}
    return tuple((name, value) for name, value in headers.items() if not value.startswith(_GENERATED))


def configuration(config: ClusterConfig, folder: Path) -> Configuration:
    """Our value as a `Configuration`, for the ecosystem's client.

    Args:
        config: without an exec plugin; a token file is read once.
        folder: where certificates are written: kubernetes-asyncio reads them from files only. It must stay.
    """
    from kubernetes_asyncio.client import Configuration

    made = Configuration(host=config.server)
    token = config.token or (named_text(Path(config.token_file)).strip() if config.token_file else "")
    if token:
        made.api_key, made.api_key_prefix = {_TOKEN: token}, {_TOKEN: "Bearer"}
    made.ssl_ca_cert = _written(folder / "ca.pem", config.ca_pem) or config.files.ca or None
    made.cert_file = _written(folder / "client.pem", config.client_cert_pem) or config.files.client_cert or None
    made.key_file = _written(folder / "client.key", config.client_key_pem) or config.files.client_key or None
    made.verify_ssl = config.verify_tls
    made.disable_strict_ssl_verification = not config.strict_tls
    made.tls_server_name = config.tls_server_name or None
    made.proxy = config.proxy or None
    made.proxy_headers = dict(config.proxy_headers) or None
    return made


def _written(path: Path, text: str) -> str:
    """The path, if there is something to write: readable by us only."""
    if not text:
        return ""
    path.touch(mode=0o600)
    path.write_text(text)
    return str(path)
