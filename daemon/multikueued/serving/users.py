"""Who asks, as a SubjectAccessReview names them. Pure."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from multikueue.core.model.names import Json


@attrs.frozen
class User:
    """Who asks."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)

    @property
    def spec(self) -> Json:
        """The user as a SubjectAccessReview names them."""
        spec: Json = {"user": self.name, "groups": [*self.groups], "uid": self.uid}
        spec["extra"] = {key: [*values] for key, values in self.extra.items()}
        return {field: value for field, value in spec.items() if value}

    @property
    def is_text(self) -> bool:
        """Whether it can be asked about: aiohttp gives bytes that are not UTF-8 as lone surrogates."""
        extra = (text for key, values in self.extra.items() for text in (key, *values))
        try:
            "".join((self.name, self.uid, *self.groups, *extra)).encode()
        except UnicodeEncodeError:
            return False
        return True
