"""All domains. To add one, add its files and one line here: docs/add-a-domain.md."""

import re
from importlib import import_module

from contract.domains.domain import Domain
from contract.topics import SHARED, topic_prefix

NAMES = (
    "nest",
    "taxi",
    "wikimedia",
)
DOMAINS: tuple[Domain, ...] = tuple(import_module(f"contract.domains.{name}").DOMAIN for name in NAMES)
TOPICS = (*(topic for domain in DOMAINS for topic in domain.topics), *SHARED)
"""All topics. Topics are created only from this list; the embedded broker creates none automatically."""
_PLAIN_NAMES = {topic.plain_name for topic in TOPICS}


def is_plain_name(name: str) -> bool:
    """Whether it is the plain name of one of TOPICS, or of its version that runs beside another, as nest-camera-stats.v2."""
    return re.sub(r"\.v\d+$", "", name) in _PLAIN_NAMES


def name_in_kafka(name: str) -> str:
    """The name in Kafka of a topic that a user has named: a plain name gets the prefix, and any other stays as it is."""
    return topic_prefix() + name if is_plain_name(name) else name


def plain_name(name: str) -> str:
    """The plain name of one of TOPICS that a user has named with or without the prefix; any other name stays as it is."""
    plain = name.removeprefix(topic_prefix())
    return plain if is_plain_name(plain) else name
