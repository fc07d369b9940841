"""The life of a query: starts and runs that end so or so, in; state, time of the next start, and what is said of it, out. No Spark, no Kafka."""

import math
from types import SimpleNamespace

import pytest

from infrastructure.errors import StreamgaugeError
from infrastructure.kafka.errors import BatchesRefused, KafkaUnavailable, TopicMissing
from infrastructure.registry.client import RegistryUnavailable
from infrastructure.settings import Settings
from infrastructure.storage.paths import StoreUnavailable
from pipeline.domains.taxi import queries
from pipeline.running.query_life import QueryLife, RunContext, State
from pipeline.running.run import SchemaAwaited

AWAY = KafkaUnavailable("no Kafka answers at k:9092")
HIDDEN = "org.apache.spark.SparkException: Connection to streaming shuffle writer 48 closed before termination"
TIMEOUT = "org.apache.kafka.common.errors.TimeoutException: Topic t not present in metadata after 60000 ms."


class FakeRun:
    """A run that ends when the test says so."""

    def __init__(self, *, catches_up):
        self.failure, self.has_begun, self.last_batch, self.is_in_batch, self.is_stopped = None, False, -1, False, False
        self.catches_up = catches_up
        self.assigned = {("nyc-taxi", 0), ("nyc-taxi", 1)}

    def call_at_end(self, ended):
        self.ended = ended

    def on_progress(self, _):
        self.has_begun = True

    def reads(self, partitions):
        return set(partitions) <= self.assigned

    def stop(self):
        self.is_stopped = True
        return True


class World:
    """Queries, each start of which gives the next of `outcomes`: an error, or a run; after the last one, runs. Time stands still.

    is_resumed: they have run before, in real-time mode.
    """

    def __init__(self, tmp_path, *outcomes, once=False, is_resumed=False):
        self.is_resumed = is_resumed
        self.outcomes, self.once, self.now = list(outcomes), once, 100.0
        self.said, self.alerts, self.shown, self.runs, self.asked = [], [], [], [], []
        self.servers, self.is_alive, self.has_news, self.new_ids = None, True, False, [9]
        self.context = RunContext(
            Settings(home=tmp_path, restart_limit=2),
            starter=self,
            alerts=SimpleNamespace(send=lambda level, query, what, _="": self.alerts.append((level, query, what))),
            progress=SimpleNamespace(
                given_up=lambda query, why: self.shown.append((query, why.error)),
                waiting=lambda query, why=None: self.shown.append((query, why and why.error)),
            ),
            say=self.said.append,
            call=lambda call: call(),
            once=once,
            clock=lambda: self.now,
        )

    def life(self, number=0):
        return QueryLife(queries(self.context.settings)[number], self.context)

    def start(self, _, unknown_ids, *, has_caught_up):
        self.asked.append(unknown_ids)
        outcome = self.outcomes.pop(0) if self.outcomes else None
        if outcome is not None:
            raise outcome
        self.runs.append(FakeRun(catches_up=self.is_resumed and not has_caught_up))
        return self.runs[-1]

    def ask_servers(self, _):
        if self.servers is not None:
            raise self.servers

    def new_schema_ids(self, _query, _run, named):
        return [*named, *self.new_ids]

    def has_new_schemas(self, *_):
        return self.has_news

    def end_run(self, failure=None):
        self.runs[-1].failure = failure
        self.runs[-1].ended()


def start_after_waits(world, life, waits):
    """Starts a query that waits so many times first, two seconds each."""
    for _ in range(waits):
        life.start()
        assert (life.state, life.due - world.now) == (State.WAITING, 2)
        world.now = life.due
    life.start()


def test_a_query_is_due_at_once_runs_and_ends(tmp_path):
    world = World(tmp_path)
    life = world.life()
    assert (life.state, life.due < world.now) == (State.DUE, True)
    life.start()
    assert (life.state, life.due, life.is_starting) == (State.RUNNING, math.inf, True)
    life.on_progress(None)
    assert not life.is_starting
    world.end_run()
    assert (life.state, life.due, life.is_over) == (State.ENDED, math.inf, True)
    assert world.alerts == []


def test_in_real_time_mode_each_start_of_a_query_that_has_run_before_first_catches_up(tmp_path):
    world = World(tmp_path, is_resumed=True)
    life = world.life()
    for failure in ("boom", None):
        life.start()
        assert (world.runs[-1].catches_up, life.is_starting) == (True, True)
        world.end_run()
        assert (life.state, life.due) == (State.DUE, world.now)
        life.start()
        assert (world.runs[-1].catches_up, life.state) == (False, State.RUNNING)
        world.end_run(failure)
    assert (life.state, world.said[:2]) == (State.ENDED, [f"{life.name} catches up", f"{life.name} runs"])


def test_a_run_that_fails_while_it_catches_up_is_followed_by_another(tmp_path):
    world = World(tmp_path, is_resumed=True)
    life = world.life()
    life.start()
    world.end_run("boom")
    life.start()
    assert world.runs[-1].catches_up


def test_a_run_that_fails_is_restarted_ever_later_and_given_up_after_the_limit(tmp_path):
    world = World(tmp_path)
    life, waits = world.life(), []
    for _ in range(3):
        life.start()
        world.end_run("java.lang.RuntimeException: boom")
        waits.append((life.state, life.due - world.now))
    assert waits == [(State.DUE, 1), (State.DUE, 2), (State.GIVEN_UP, math.inf)]
    assert [alert[0] for alert in world.alerts] == ["warning", "warning", "error"]
    assert life.failure.startswith("failed 3 times without a batch in between: java.lang.RuntimeException: boom")
    assert world.shown == [(life.name, life.failure)]


@pytest.mark.parametrize("progress", [{"batchId": 7}, None], ids=["a batch", "nothing to do"])
def test_failures_before_a_run_that_works_do_not_count(tmp_path, progress):
    world = World(tmp_path)
    life = world.life()
    for _ in range(5):
        life.start()
        world.end_run("boom")
        assert life.due == world.now + 1
        life.start()
        life.on_progress(progress)
        world.end_run("boom")
        life.start()
        life.on_progress(progress)
    assert [alert[0] for alert in world.alerts] == ["warning", "resolved"] * 10


def test_a_query_that_restarts_at_once_for_ever_is_an_alert_after_the_fourth_restart_and_resolved_with_the_next_batch(tmp_path):
    world = World(tmp_path)
    life, waits, alerts = world.life(), [], []
    for _ in range(12):
        life.start()
        world.end_run(TIMEOUT)
        waits.append(life.due - world.now)
        alerts.append(len(world.alerts))
    assert waits == [0, 0, 0, 8, 16, 32, 60, 60, 60, 60, 60, 60]
    assert alerts == [0, 0, 0, *[1] * 9]
    life.start()
    life.on_progress({"batchId": 7})
    life.on_progress({"batchId": 8})
    assert world.alerts == [
        ("warning", life.name, "failed and restarts: a request to Kafka was not answered in time"),
        ("resolved", life.name, "runs again"),
    ]
    world.end_run(TIMEOUT)
    assert (life.state, life.due) == (State.DUE, world.now)


def test_restarts_at_once_are_no_reason_to_give_a_query_up(tmp_path):
    world = World(tmp_path)
    life = world.life()
    for failure in [TIMEOUT] * 10 + ["boom"]:
        life.start()
        world.end_run(failure)
    assert life.due == world.now + 1


def test_each_query_has_its_own_count_of_failures(tmp_path):
    world = World(tmp_path)
    for number in range(2):
        life = world.life(number)
        life.start()
        world.end_run("boom")
        assert life.due == world.now + 1, life.name


@pytest.mark.parametrize("error", [ValueError("no number\nin line 3"), OSError("No space left on device"), Exception("SlowDown")])
def test_a_start_that_fails_is_repeated_as_after_any_failure(tmp_path, error):
    world = World(tmp_path, error, error, None, error)
    life, states = world.life(), []
    for _ in range(3):
        life.start()
        states.append((life.state, life.due - world.now))
    assert states == [(State.DUE, 1), (State.DUE, 2), (State.RUNNING, math.inf)]
    world.end_run("boom")
    assert life.state is State.GIVEN_UP
    assert not any("\n" in line for line in world.said)


def test_a_start_that_only_a_person_can_mend_gives_the_query_up_at_once(tmp_path):
    world = World(tmp_path, StreamgaugeError("set it right"))
    life = world.life()
    life.start()
    assert (life.state, life.failure) == (State.GIVEN_UP, "set it right")


def test_a_query_whose_source_is_gone_is_stopped_and_given_up(tmp_path):
    world = World(tmp_path)
    life = world.life()
    life.abandon(StreamgaugeError("it is not started"))
    assert life.state is State.DUE
    life.start()
    life.abandon(StreamgaugeError("the topic was recreated"))
    assert (life.state, life.failure, world.runs[-1].is_stopped) == (State.GIVEN_UP, "the topic was recreated", True)
    world.end_run("cut off")
    assert (life.state, [alert[0] for alert in world.alerts]) == (State.GIVEN_UP, ["error"])


def test_a_server_that_goes_away_during_a_start_is_waited_for(tmp_path):
    world = World(tmp_path, OSError("connection refused"))
    world.servers, life = StoreUnavailable("no store answers"), world.life()
    life.start()
    assert (life.state, life.failure) == (State.WAITING, "")


def test_a_folder_that_cannot_be_read_affects_its_query_alone(tmp_path):
    denied = PermissionError(13, "Permission denied", "checkpoints/nyc-taxi-v1-update/offsets")
    world = World(tmp_path, denied)
    world.servers, life = denied, world.life()
    life.start()
    assert (life.state, life.due - world.now) == (State.DUE, 1)
    life.start()
    world.end_run(HIDDEN)
    assert life.state is State.DUE, "the end of a run must not raise either: it would end the runs of all queries"


def test_a_start_that_fails_because_sparks_jvm_has_ended_is_no_failure_of_the_query(tmp_path):
    world = World(tmp_path, ConnectionRefusedError())
    world.is_alive, life = False, world.life()
    with pytest.raises(ConnectionRefusedError):
        life.start()
    assert life.state is State.DUE
    assert world.alerts == []


def test_a_topic_that_is_missing_is_waited_for_up_to_the_limit(tmp_path):
    missing = TopicMissing("Kafka has no topic t")
    world = World(tmp_path, None, missing, missing, missing)
    life, waits = world.life(), []
    life.start()
    world.end_run(TIMEOUT)
    assert (life.state, life.due) == (State.DUE, world.now), (
        "the sink waits for a missing topic as for a Kafka that is away; the start tells"
    )
    for _ in range(3):
        life.start()
        waits.append(life.due - world.now)
    assert waits == [1, 2, math.inf]
    assert "Kafka has no topic t" in life.failure
    assert [alert[0] for alert in world.alerts] == ["warning", "warning", "error"]


def test_a_topic_of_a_kafka_that_has_just_come_up_is_waited_for(tmp_path):
    missing = TopicMissing("Kafka has no topic t")
    world = World(tmp_path, AWAY, missing, missing)
    life, states = world.life(), []
    for _ in range(4):
        life.start()
        states.append(life.state)
        world.now = min(life.due, world.now + 10)
    assert states == [State.WAITING, State.WAITING, State.WAITING, State.RUNNING]
    assert [alert[0] for alert in world.alerts] == ["warning"], "only that Kafka was away should have been sent"


@pytest.mark.parametrize(
    ("away", "server"), [(AWAY, "Kafka"), (RegistryUnavailable("r"), "the schema registry"), (StoreUnavailable("s"), "the object store")]
)
def test_a_server_that_is_away_is_waited_for_as_long_as_it_takes(tmp_path, away, server):
    world = World(tmp_path, *[away] * 50)
    life, other = world.life(), world.life(1)
    other.start()
    for _ in range(49):
        life.start()
        assert (life.state, life.due - world.now) == (State.WAITING, 2)
        world.now = life.due
    life.start()
    assert life.state is State.RUNNING
    assert sum("waits for" in line for line in world.said) == 2, "once for each query"
    assert len(world.alerts) == 1, "one for the outage"
    assert server in world.alerts[0][2]


def test_a_result_topic_that_refuses_batches_is_waited_for_and_shown_once(tmp_path):
    refused = BatchesRefused("counts", 100, 16_384)
    world = World(tmp_path, *[refused] * 20)
    life = world.life()
    start_after_waits(world, life, 20)
    assert life.state is State.RUNNING
    assert world.shown == [(life.name, str(refused))]
    assert [alert[0] for alert in world.alerts] == ["warning"]


def test_that_a_topic_refuses_batches_is_said_of_each_query_once_also_while_others_start_and_after_an_outage(tmp_path):
    refused = BatchesRefused("counts", 100, 16_384)
    world = World(tmp_path, AWAY, refused, None, refused, refused)
    first, second, third = world.life(), world.life(1), world.life(2)
    for life in (first, first, second, first, third):
        life.start()
    assert world.shown == [(first.name, str(refused)), (third.name, str(refused))]
    assert [query for level, query, what in world.alerts if "result topic" in what] == [first.name, third.name]


def test_an_empty_topic_without_a_schema_is_waited_for_and_alarms_nobody(tmp_path):
    nothing = SchemaAwaited(queries(Settings(home=tmp_path))[0], "s-value")
    world = World(tmp_path, *[nothing] * 50)
    life = world.life()
    start_after_waits(world, life, 50)
    assert (life.state, world.alerts) == (State.RUNNING, [])
    assert world.said == [f"{life.name} waits for a schema: {nothing}", f"{life.name} runs"]


def test_with_once_a_server_is_waited_for_half_a_minute(tmp_path):
    world = World(tmp_path, *[AWAY] * 50, once=True)
    life = world.life()
    while not life.is_over:
        life.start()
        world.now = min(life.due, world.now + 60)
    assert (life.state, life.failure) == (State.GIVEN_UP, str(AWAY))
    assert len(world.asked) == 17, "every 2 s for 30 s, and once more"
    other = world.life(1)
    other.start()
    assert other.state is State.GIVEN_UP, "the server has had its time"


def test_a_run_that_fails_while_a_server_is_away_waits_and_has_not_failed(tmp_path):
    world = World(tmp_path)
    world.servers, life = AWAY, world.life()
    for _ in range(5):
        life.start()
        world.end_run("java.net.ConnectException: boom")
        assert life.state is State.WAITING


def test_an_outage_that_comes_again_is_told_again(tmp_path):
    world = World(tmp_path, AWAY, None, AWAY)
    life = world.life()
    life.start()
    life.start()
    world.end_run(TIMEOUT)
    life.start()
    assert [alert[0] for alert in world.alerts] == ["warning", "warning"]


def test_a_failure_that_only_a_person_can_mend_is_final_at_once(tmp_path):
    world = World(tmp_path)
    life = world.life()
    life.start()
    world.end_run("[STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE] Provided value schema does not match")
    assert life.state is State.GIVEN_UP
    assert "raise its version" in life.failure


def test_an_unknown_schema_is_asked_for_at_a_restart_that_is_due_at_once(tmp_path):
    world = World(tmp_path)
    life = world.life()
    life.start()
    world.end_run("[USER_RAISED_EXCEPTION] a schema id that was not known when the query started: 7")
    assert (life.state, life.due) == (State.DUE, world.now)
    life.start()
    assert world.asked == [[], [7, 9]]
    assert (world.alerts, world.shown) == ([], [(life.name, None)])


def test_a_failure_of_a_task_that_reads_from_the_failed_one_is_searched_for_a_new_schema(tmp_path):
    world = World(tmp_path)
    life = world.life()
    life.start()
    world.end_run(HIDDEN)
    assert (life.state, life.due, world.said[-1]) == (
        State.DUE,
        world.now,
        f"{life.name} met an unknown schema (id 9): it asks the registry and restarts from its checkpoint",
    )
    life.start()
    world.new_ids = []
    world.end_run(HIDDEN)
    assert world.said[-1] == f"{life.name} restarts from its checkpoint: a task failed, and Spark does not say why"
    life.start()
    assert world.asked == [[], [9], []]
    world.servers, world.new_ids = AWAY, [9]
    world.end_run(HIDDEN)
    assert life.state is State.WAITING, "Kafka is away, which explains it"


def test_a_schema_that_the_registry_lacked_costs_a_restart_and_the_end_of_the_old_run_nothing(tmp_path):
    world = World(tmp_path)
    life = world.life()
    life.start()
    life.on_progress(None)
    assert life.state is State.RUNNING
    world.has_news, (old,) = True, world.runs
    life.on_progress(None)
    assert (old.is_stopped, life.state, life.due) == (True, State.DUE, world.now)
    life.start()
    old.ended()
    assert (life.state, world.alerts) == (State.RUNNING, [])


def test_a_stop_waits_for_the_batch_under_way_and_for_no_other(tmp_path):
    world = World(tmp_path)
    working, idle = world.life(), world.life(1)
    for life in (idle, working):
        life.start()
    resting, busy = world.runs
    busy.is_in_batch, busy.last_batch = True, 4
    idle.finish()
    working.finish()
    assert (resting.is_stopped, idle.state) == (True, State.ENDED)
    assert (busy.is_stopped, working.state) == (False, State.RUNNING)
    working.on_progress({"batchId": 4})
    assert not busy.is_stopped, "this batch was done before the stop, and is only told now"
    working.on_progress({"batchId": 5})
    assert (busy.is_stopped, working.state) == (True, State.ENDED)


def test_a_run_that_fails_while_it_is_to_end_is_not_restarted(tmp_path):
    world = World(tmp_path)
    life = world.life()
    life.start()
    world.runs[-1].is_in_batch = True
    life.finish()
    world.end_run("boom")
    assert life.state is State.ENDED
    assert world.alerts == []


@pytest.mark.parametrize(("partitions", "is_stopped"), [(2, False), (3, True)], ids=["those that it reads", "one more"])
def test_a_run_that_does_not_read_a_new_partition_is_restarted(tmp_path, partitions, is_stopped):
    world = World(tmp_path)
    life = world.life()
    life.start()
    life.follow([("nyc-taxi", number) for number in range(partitions)])
    assert (world.runs[0].is_stopped, life.due == world.now) == (is_stopped, is_stopped)
    assert (world.said[-1] == f"{life.name} restarts from its checkpoint: nyc-taxi has more partitions than it reads") == is_stopped
