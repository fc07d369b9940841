"""Which incidents the rows of result topics tell of. tests/kafka/test_notify.py has the command."""

from datetime import UTC, datetime

import pytest
from running import one_line_error, streamgauge

from contract.settings import Settings
from streamgauge.notify.incidents import alarms, cameras, crowds

TEN = datetime(2026, 1, 1, 10, tzinfo=UTC)
HOUR = {"start": TEN, "end": TEN.replace(hour=11)}


@pytest.mark.parametrize(("alert", "level"), [("offline", "warning"), ("flapping", "warning"), ("back", "resolved")])
def test_a_camera_that_flaps_is_the_same_incident_until_it_is_back(alert, level):
    row = {"device_id": "cam-1", "zip_code": "94107", "alert": alert, "incident": TEN, "since": TEN.replace(minute=7)}
    (found,) = cameras([row])
    assert (found.name, found.level) == ("camera cam-1 2026-01-01T10:00:00.000Z", level)


def test_a_crowd_is_over_when_its_hour_is():
    row = {"zip_code": "94107", "window": HOUR, "crowd": 30, "reached_at": TEN}
    levels = [crowds([row], at)[0].level for at in (TEN, HOUR["end"])]
    assert levels == ["warning", "resolved"]
    assert crowds([row], TEN)[0].what == "30 people seen in 94107 in the hour from 2026-01-01T10:00:00.000Z"


@pytest.mark.parametrize(("hour", "level"), [(11, "warning"), (12, "resolved")])
def test_an_alarm_is_over_after_an_hour_without_it(hour, level):
    row = {"time": TEN, "level": "warning", "query": "nest-alarms", "what": "smoke", "detail": ""}
    (found,) = alarms({b'{"alarm":"smoke","device_id":"a1","structure_id":"s1"}': row}, TEN.replace(hour=hour))
    assert found.level == level


def test_without_an_address_it_does_not_start(tmp_path):
    line = one_line_error(streamgauge("notify", settings=Settings(home=tmp_path)), 2)
    assert "ALERT_WEBHOOK_URL is not set" in line
