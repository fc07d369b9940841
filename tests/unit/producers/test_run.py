"""A run of a producer against a broker in this process."""

import json

import pytest
from messages import refused
from mock_kafka import MockKafka

from contract.domains.nest import NEST_LOGS
from infrastructure.errors import StreamgaugeError
from infrastructure.kafka.recent_records import last_records
from producers.delivery.events import Event, Source
from producers.delivery.faults import Faults
from producers.delivery.run import Run, deliver


@pytest.mark.parametrize("error", [StreamgaugeError("the recording is damaged"), OSError("the recording is damaged")])
def test_what_comes_before_an_error_of_the_stream_is_sent(tmp_path, capsys, error):
    def events():
        yield from (Event(number, number, None, b"%d" % number) for number in range(100))
        raise error

    broker = MockKafka(tmp_path, [NEST_LOGS.name])
    kafka = broker.settings.kafka
    run = Run(kafka, NEST_LOGS.name, "people_seen", "sightings", Source.RECORDED, Faults(late=0.5), lambda value, _: value, rate=None)
    with refused("the recording is damaged", by=type(error)):
        deliver(run, events(), json=True)
    sent = {record.value() for record in last_records(kafka, NEST_LOGS.name, 100)}
    assert sent == {b"%d" % number for number in range(100)}
    assert json.loads(capsys.readouterr().out)["events"] == 100
