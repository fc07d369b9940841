"""Each panel of the dashboard names what makes its numbers: that query, topic, function and file are there."""

import ast
import pkgutil
from importlib import import_module
from pathlib import Path

import pytest

import dashboard
from contract.domains import TOPICS
from contract.topics import Topic
from dashboard.origin import Origin
from infrastructure.settings import Settings
from pipeline.catalog import all_queries
from pipeline.sinks.topics import CompactedTopic

ROOT = Path(__file__).parents[2]
PAGES = [import_module(found.name) for found in pkgutil.walk_packages(dashboard.__path__, "dashboard.") if found.name != "dashboard.app"]
ORIGINS = {(page.__name__, name): found for page in PAGES for name, found in vars(page).items() if isinstance(found, Origin)}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The topics that each query writes, by its name."""
    queries = all_queries(Settings(home=tmp_path_factory.mktemp("home")))
    return {query.name: query.sink.topics for query in queries if isinstance(query.sink, CompactedTopic)}


@pytest.mark.parametrize("origin", ORIGINS.values(), ids=map(".".join, ORIGINS))
def test_the_query_the_topic_the_function_and_the_file_of_a_panel_are_there(origin, written):
    assert origin.topic in TOPICS
    assert not origin.query or origin.topic in written[origin.query]
    defined = ast.parse((ROOT / origin.file).read_text()).body
    assert origin.function in {one.name for one in defined if isinstance(one, ast.FunctionDef | ast.ClassDef)}


def test_an_origin_is_one_sentence():
    assert Origin(Topic("counts", 1), "count", "counted", "pipeline/count.py").sentence == (
        "From topic `counts`, which query `count` writes: `counted` in `pipeline/count.py`."
    )
    assert "which every query writes" in Origin(Topic("states", 1), "", "told", "pipeline/states.py").sentence
