"""`python -m streamgauge.operations.health CHECK`: health checks for containers. Exit code 1, with the reason, if one fails.

queries: a query of this host runs, and none of its process has failed or restarts. topic NAME: a record arrived within the last minute.
http://...: the URL answers with status 200. Containers run this every few seconds, so it imports little; `streamgauge doctor` is for
people.
"""

import http.client
import socket
import sys
import time
import urllib.request  # httpx2 takes a quarter of a second to import

from infrastructure.errors import StreamgaugeError
from infrastructure.settings import Settings
from infrastructure.text import without_credentials

ANSWER_SECONDS = 5
FRESH_SECONDS = 60


def queries_problem(settings: Settings) -> str | None:
    """What is wrong with the queries of this host. None if nothing is. Raises StreamgaugeError when Kafka cannot be reached."""
    from contract.query_status import FAILED, RESTARTING, STARTING, read_statuses
    from infrastructure.output.terminal import warn

    all_statuses = read_statuses(settings, warn)
    own_statuses = [status for status in all_statuses if status.host == socket.gethostname() and status.state != STARTING]
    if not own_statuses:
        return "no query has started yet"
    if running := {status.pid for status in own_statuses if status.has_process}:
        # Others are left of processes that have ended: of `ingest orders --once`, or of a run with more queries.
        own_statuses = [status for status in own_statuses if status.pid in running and status.state in {FAILED, RESTARTING}]
    return ", ".join(f"{status.query} is {status.state}" for status in own_statuses) or None


def topic_problem(settings: Settings, topic: str, now: float) -> str | None:
    """What is wrong if no record arrived in `topic` within FRESH_SECONDS before `now`. None if one did.

    now: in seconds since 1970. Raises StreamgaugeError when Kafka does not answer.
    """
    from confluent_kafka import KafkaException

    from infrastructure.kafka.topic_ends import NEWEST, list_offsets

    admin = settings.kafka.admin()
    try:
        numbers = admin.list_topics(topic, ANSWER_SECONDS).topics[topic].partitions
        newest = list_offsets(admin, ((topic, number) for number in numbers), NEWEST, ANSWER_SECONDS)
        newest_ms = max((record.timestamp for record in newest.values()), default=-1)
    except (KafkaException, TimeoutError) as error:
        msg = f"Kafka at {settings.kafka} did not return what is in {topic}: {error}"
        raise StreamgaugeError(msg) from error
    if newest_ms < 0:
        return f"nothing has come to {topic} yet"
    age = now - newest_ms / 1000
    return f"nothing has come to {topic} for {age:.0f} s" if age > FRESH_SECONDS else None


def web_problem(url: str) -> str | None:
    """What is wrong with the response of `url`. None if its status is 200."""
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=ANSWER_SECONDS):
            return None
    except (http.client.HTTPException, OSError) as error:
        return without_credentials(f"{url} does not answer: {error}")


def problem(arguments: list[str], settings: Settings) -> str | None:
    """The problem that the check in `arguments` finds. None if there is none. Raises StreamgaugeError for an unknown check."""
    match arguments:
        case ["queries"]:
            return queries_problem(settings)
        case ["topic", topic]:
            from contract.domains import name_in_kafka

            return topic_problem(settings, name_in_kafka(topic), time.time())
        case [url] if url.startswith("http://"):
            return web_problem(url)
    msg = f"no check {' '.join(arguments)}; expected queries, topic NAME or http://..."
    raise StreamgaugeError(msg)


def main() -> None:
    """Ends the program: with the problem on standard error and exit code 1, if there is one."""
    try:
        sys.exit(problem(sys.argv[1:], Settings.from_environment()))
    except StreamgaugeError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
