"""Keeps result topics current for the pages: one background thread per topic and process, for any number of browsers.

A page calls `follow(...)` for the topic's `Follower`, takes its `snapshot` and draws it. It never waits for Kafka.
"""

import streamlit as st

from contract.topic_values import value_decoder
from contract.topics import Topic
from infrastructure.kafka.cluster import KafkaCluster
from infrastructure.kafka.follower import Follower
from infrastructure.kafka.recent_records import DecodeMessage, Recent, RecentReader
from infrastructure.registry.server import RegistryServer
from infrastructure.rows import Decode, Row, decoder
from infrastructure.settings import Settings


def row_decoder(topic: Topic, registry: RegistryServer) -> Decode:
    """Decodes a value of `topic` to the fields that it declares, with start and end in place of a window. Raises as `decoder` and `value_decoder`."""
    declared = decoder(topic.row, value_decoder(topic, registry))
    if "window" not in topic.row.names():
        return declared

    def decode(value: bytes) -> Row:
        row = declared(value)
        return row | row.pop("window")

    return decode


def follow(kafka: KafkaCluster, topic: Topic) -> Follower:
    """The follower of `topic`, one per process, started at the first call. Its rows are those of `row_decoder`."""
    return _follow(kafka, topic.name, topic)


@st.cache_resource(show_spinner=False, on_release=Follower.stop)
def _follow(kafka: KafkaCluster, name: str, _topic: Topic) -> Follower:
    return Follower(kafka, name, row_decoder(_topic, Settings.from_environment().registry))


@st.cache_resource(show_spinner=False, on_release=Follower.stop)
def follow_recent(kafka: KafkaCluster, topic: str, recent: Recent, _decode: DecodeMessage) -> Follower:
    """The follower of the newest records of `topic`, one per process. Its rows are these records, oldest first."""
    return Follower(kafka, topic, open_reader=lambda: RecentReader(kafka, topic, recent, _decode).opened())
