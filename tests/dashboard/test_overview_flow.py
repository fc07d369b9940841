"""The drawing of the pipeline on the Overview page: queries in, Graphviz out."""

import json
import re

import pytest

from contract.domains import nest, wikimedia
from dashboard.overview.flow import Flow, drawing, table_of

MARKUP = '"]; evil [URL="http://127.0.0.1"]; "\\N'


def flow(query="nest-camera-stats", **fields):
    known = {"state": "running", "rows_in": 80.0, "lag": 1234, "rows_out": 1.5, "table": query, "topics": ["nest-logs"]}
    return Flow(query=query, **known | fields)


def labels(text):
    """The labels of the drawing, by the name of the node or arrow."""
    found = re.findall(r'^(\S+(?: -> \S+)?) \[label=("(?:[^"\\]|\\.)*")', text, re.MULTILINE)
    return {name: json.loads(label).replace("\N{FIGURE SPACE}", "") for name, label in found}


def test_a_query_stands_between_its_topic_and_its_table_with_rates_and_lag_on_the_arrows():
    assert labels(drawing([flow()], is_dark=False)) == {
        "query0": "nest-camera-stats\nrunning",
        "topic0": "nest-logs",
        "table1": "nest-camera-stats",
        "topic0 -> query0": "80/s\nlag 1,234",
        "query0 -> table1": "1.5/s",
    }


def test_queries_of_one_topic_share_it_and_what_is_unknown_is_left_out():
    seen = labels(drawing([flow(), flow("nest-archive", rows_in=None, lag=None, rows_out=None, table="files")], is_dark=False))
    assert list(seen.values()).count("nest-logs") == 1
    assert (seen["topic0 -> query1"], seen["query1 -> table2"]) == ("", "")


def test_queries_and_tables_are_shown_without_the_name_of_their_domain_and_topics_with_it():
    seen = labels(drawing([flow()], prefix="nest-", is_dark=False))
    assert (seen["query0"], seen["topic0"], seen["table1"]) == ("camera-stats\nrunning", "nest-logs", "camera-stats")


def test_names_are_texts_whatever_they_hold():
    seen = labels(drawing([flow(MARKUP, topics=[MARKUP], table=MARKUP)], is_dark=True))
    assert (seen["query0"], seen["topic0"], seen["table1"]) == (f"{MARKUP}\nrunning", MARKUP, MARKUP)


def test_the_drawing_is_as_wide_whatever_the_numbers_are():
    widths = [
        [len(line) for line in drawing([flow(rows_in=rate, lag=lag)], is_dark=False).splitlines()]
        for rate, lag in ((0.0, 0), (999.0, 9_999))
    ]
    assert widths[0] == widths[1]


@pytest.mark.parametrize(
    ("query", "domain", "table"),
    [
        ("nest-camera-stats", nest.DOMAIN, "nest-camera-stats"),
        ("nest-camera-status", nest.DOMAIN, "nest-camera-status"),
        ("wikimedia-edit-stats", wikimedia.DOMAIN, "wikimedia.processed"),
        ("nest-archive", nest.DOMAIN, "files"),
        ("nest-dead-letters", nest.DOMAIN, "dead-letters"),
        ("ingest-orders", None, "files"),
    ],
)
def test_the_table_of_a_query(query, domain, table):
    assert table_of(query, domain) == table
