"""Where --continue begins, after records of a broker that runs in this process."""

from mock_kafka import START_MS, MockKafka

from contract.domains.taxi import NYC_TAXI
from producers.delivery.resume import newest_event_ms
from producers.taxi.stream import event_time_ms


def newest(kafka):
    return newest_event_ms(kafka.settings, NYC_TAXI.name, event_time_ms, print)


def write_trips(kafka, *dropoffs_ms):
    kafka.write(NYC_TAXI.name, *(b'{"lpep_dropoff_datetime": %d}' % dropoff_ms for dropoff_ms in dropoffs_ms))


def test_a_time_before_1970_or_of_the_future_is_none_to_continue_after(tmp_path):
    kafka = MockKafka(tmp_path, [NYC_TAXI.name])
    write_trips(kafka, -(2**63), 2**63 - 1)
    assert newest(kafka) is None
    write_trips(kafka, START_MS)
    assert newest(kafka) == START_MS


def test_a_record_whose_timestamp_is_no_time_is_none_to_continue_after(tmp_path):
    kafka = MockKafka(tmp_path, [NYC_TAXI.name])
    in_microseconds = START_MS * 1000
    kafka.producer.produce(NYC_TAXI.name, b'{"lpep_dropoff_datetime": %d}' % in_microseconds, timestamp=in_microseconds)
    assert kafka.producer.flush(10) == 0
    assert newest(kafka) is None
