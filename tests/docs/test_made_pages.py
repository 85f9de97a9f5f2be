"""The pages that are made of code: the settings, and troubleshooting by symptom."""

from __future__ import annotations

import re
from typing import Final

import attrs
import yaml

from multikueued.diagnosis.checks.mirrors import WAY_RULES
from multikueued.reports.remedies.remedy import REMEDIES
from multikueued.settings.config import DispatcherSettings, Settings
from multikueued.settings.file import parse_settings
from tests.docs import settings_table, sizes, symptoms
from tests.docs.marked import replaced

NUMBER: Final = re.compile(r"(?:`|modules) (\d[\d,]*\d)")


def test_the_settings_are_up_to_date() -> None:
    """`python -m tests.docs.settings_table` writes them."""
    page = settings_table.PAGE.read_text()
    assert replaced(page, "tests/docs/settings_table.py", settings_table.tables()) == page


def test_every_setting_says_what_it_does() -> None:
    assert [".".join(setting.path) for setting in settings_table.settings() if not setting.text] == []


def test_the_defaults_can_be_pasted() -> None:
    """Whoever does changes nothing."""
    shown = settings_table.defaults()
    del shown["dispatcher"]  # `incremental` stands there for its own dispatcher only
    del shown["clusterProfile"]  # the section alone has ClusterProfiles followed
    settings = parse_settings(yaml.safe_dump(shown))
    assert attrs.evolve(settings, dispatcher=DispatcherSettings()) == Settings()


def test_the_symptoms_are_up_to_date() -> None:
    """`python -m tests.docs.symptoms` writes them."""
    page = symptoms.PAGE.read_text()
    assert replaced(page, "tests/docs/symptoms.py", symptoms.tables()) == page


def test_the_sizes_are_right_within_a_tenth() -> None:
    """`python -m tests.docs.sizes` writes them: not with each change of a module."""
    page = sizes.PAGE.read_text()
    pages = (page, sizes.with_sizes(page))
    written, measured = ([int(number.replace(",", "")) for number in NUMBER.findall(text)] for text in pages)
    assert len(written) > 20
    assert [pair for pair in zip(written, measured, strict=True) if not 0.9 < pair[0] / pair[1] < 1.1] == []


def test_the_chinese_page_names_findings_that_there_are() -> None:
    page = (symptoms.PAGE.parent / "zh" / "troubleshooting.md").read_text()
    before_the_advice = (row.split("|")[2] for row in page.splitlines() if row.startswith("|"))
    named = {
        name for why in before_the_advice for name in re.findall(r"`([a-z]+(?:-[a-z]+)+|rbac|inactive|webhook)`", why)
    }
    assert len(named) > 20
    assert named - {row.finding.id for rows in symptoms.sections().values() for row in rows} == set()


def test_each_kind_of_finding_has_a_row() -> None:
    told_elsewhere = {"copy-does-not-end", "earlier-run", "origin-changed", "quota-held", "starving", "worker-clock"}
    told_by_doctor = {"mirror-way", *(rule.id for rule in WAY_RULES)}
    known = {row.id for row in REMEDIES.values() if row.why} - told_elsewhere - told_by_doctor
    assert {row.finding.id for rows in symptoms.sections().values() for row in rows} == known
