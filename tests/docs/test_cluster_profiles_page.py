"""The part about workers by ClusterProfile: settings and objects to paste, fields that exist."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import dedent

import attrs
import pytest
import yaml

from multikueue.core.config.access_providers import ProfileSettings
from multikueue.core.config.cluster_profiles import chosen_access
from multikueue.core.config.profile_secrets import is_for, secret_name
from multikueue.core.model.names import Json
from multikueued.settings.file import parse_settings
from multikueued.settings.profiles import AccessProviderSettings, ExecSettings
from multikueued.settings.values import camel

WORKERS = (Path(__file__).parents[2] / "docs" / "workers.md").read_text()
PAGE = WORKERS.partition("\n## Workers by ClusterProfile\n")[2].partition("\n## ")[0]
BLOCKS = [dedent(text) for text in re.findall(r"^ *```yaml\n(.*?)^ *```$", PAGE, re.DOTALL | re.MULTILINE)]
SETTINGS = [text for text in BLOCKS if "accessProviders:" in text and "kind:" not in text]
OBJECTS: dict[str, Json] = {obj["kind"]: obj for obj in map(yaml.safe_load, BLOCKS) if "kind" in obj}


def access(text: str) -> ProfileSettings:
    section = parse_settings(text).cluster_profile
    assert section is not None
    return section.profile_settings()


@pytest.mark.parametrize("text", SETTINGS)
def test_the_settings_can_be_pasted(text: str) -> None:
    assert access(text).providers


def test_every_field_of_a_provider_is_told() -> None:
    for owner in (AccessProviderSettings, ExecSettings):
        for field in attrs.fields(owner):
            assert f"`{camel(field.name)}`" in PAGE


def test_the_profile_and_the_secret_belong_together() -> None:
    profile, secret = OBJECTS["ClusterProfile"], OBJECTS["Secret"]
    (text,) = (text for text in SETTINGS if "builtin: secretreader" in text)
    chosen = chosen_access(profile, "oslo", access(text))

    assert secret_name(chosen) == secret["metadata"]["name"]
    assert is_for(secret, profile, chosen.provider)
