"""The documents against the code."""

import ast
import inspect
import json
import re
import runpy
from dataclasses import fields
from itertools import pairwise

import pytest
from documents import DOCUMENTS, PAGES, ROOT, named

from infrastructure.java.jars import bundles, locked
from infrastructure.settings import Settings
from infrastructure.text import size_text
from streamgauge.demo.services import FAULTS
from streamgauge.operations.doctor import machine
from streamgauge.operations.expiry import TABLES

MOST_WORDS = 1000
MAKEFILE = (ROOT / "Makefile").read_text()
LOOKED_UP = [ROOT / "docs" / name for name in ("commands.md", "guarantees.md", "settings.md", "topics.md")]
"""Pages that nobody reads from beginning to end."""
DEFAULTS_IN_WORDS = {"cache": "the user's cache folder", "shuffle_partitions": "the number of cores, at most 8"}
LOCKS = (ROOT / "uv.lock").read_text() + (ROOT / "lake" / "uv.lock").read_text()
TOOLS = ("duckdb", "polars", "pandas", "pyarrow", "deltalake", "jsonschema", "httpx2", "moto", "nbclient")
"""Python packages in docs/integrations.md."""
GIGABYTES = {"README.md": 4, "docs/compose.md": 4}
"""What documents ask for."""
WORDS = {"late": "--late", "too late": "--too-late", "sent twice": "--duplicates", "corrupt": "--corrupt"}


def rows(document, first_cell):
    lines = (ROOT / document).read_text().splitlines()
    cells = [[cell.strip().strip("`") for cell in line.strip("|").split(" | ")] for line in lines if re.match(first_cell, line)]
    return [tuple(row) for row in cells]


def anchors_of(document):
    """The anchors of a page's headings, as forges and the site make them."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```", "", document.read_text(), flags=re.DOTALL | re.MULTILINE), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def links_of(document):
    return re.findall(r"\]\(([^)]+)\)", re.sub(r"^```.*?^```", "", document.read_text(), flags=re.DOTALL | re.MULTILINE))


def docstrings_of_fields(of):
    """The docstring below each field of a dataclass, on one line, by the field's name."""
    body = ast.parse(inspect.getsource(of)).body[0].body
    below = {field.target.id: text.value.value for field, text in pairwise(body) if isinstance(field, ast.AnnAssign)}
    return {name: " ".join(text.split()) for name, text in below.items()}


def as_documented(setting):
    match setting.default:
        case None:
            return ""
        case bool():
            return str(setting.default).lower()
        case float():
            return f"{setting.default:g}"
    return DEFAULTS_IN_WORDS.get(setting.name, str(setting.default))


def test_the_table_of_settings_is_that_of_the_code():
    documented = [tuple(cell.strip("` ") for cell in row) for row in rows("docs/settings.md", r"\| `[A-Z_]+` \|")]
    sentences = [(variable, default, f"{meaning[0].upper()}{meaning[1:]}.") for variable, default, meaning in documented]
    meanings = docstrings_of_fields(Settings)
    assert sentences == [(one.metadata["variable"], as_documented(one), meanings[one.name]) for one in fields(Settings)]


def test_the_page_the_schemas_and_the_contracts_of_topics_are_those_of_their_declarations():
    topics = runpy.run_path(str(ROOT / "docs" / "topics.py"))
    assert topics["PAGE"].read_text() == topics["page"](), "write it anew: .venv/bin/python docs/topics.py"
    assert {file: file.read_text() for file in topics["SCHEMAS"].glob("*-value.json")} == topics["schemas"](), "as above"
    assert {file: file.read_text() for file in topics["CONTRACTS"].iterdir()} == topics["contracts"](), "as above"


def test_the_acls_name_every_topic_with_windows():
    documented = re.search(r"^- \*results with windows\*: (.+)$", (ROOT / "docs/security.md").read_text(), re.MULTILINE)
    assert set(documented[1].split(", ")) == {table.name for table in TABLES}


@pytest.mark.parametrize("document", DOCUMENTS, ids=named)
def test_links_lead_somewhere(document):
    for link in links_of(document):
        if not link.startswith("http"):
            target, _, anchor = link.partition("#")
            page = (document.parent / target).resolve() if target else document
            assert page.exists(), f"it links to {target}, which is not there"
            assert not anchor or anchor in anchors_of(page), f"it links to {link}, and {page.name} has no such heading"


@pytest.mark.parametrize("page", [page for page in PAGES if page not in LOOKED_UP], ids=named)
def test_a_page_is_short(page):
    prose = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    words = [word for word in prose.split() if re.search(r"[A-Za-z0-9]", word)]
    assert len(words) <= MOST_WORDS, "tighten it, or split it"


def test_the_map_has_every_page():
    start = ROOT / "docs" / "README.md"
    linked = {(start.parent / link).resolve() for link in links_of(start)}
    assert [named(page) for page in PAGES if page not in linked | {start}] == []


def test_the_site_has_every_page():
    navigation = (ROOT / "mkdocs.yml").read_text()
    assert [named(page) for page in PAGES if f"- {page.relative_to(ROOT / 'docs')}\n" not in navigation] == []


def test_the_list_of_pages_for_programs_is_that_of_the_map():
    llms = runpy.run_path(str(ROOT / "docs" / "llms.py"))
    assert llms["FILE"].read_text() == llms["text"](), "write it anew: .venv/bin/python docs/llms.py"
    listed = {(ROOT / link).resolve() for link in links_of(llms["FILE"])}
    assert [named(page) for page in PAGES if page not in listed | {llms["MAP"]}] == []


def test_the_tools_of_python_have_the_versions_of_the_lock():
    locked_versions = {name: set(re.findall(rf'^name = "{name}"\nversion = "(\d+\.\d+)', LOCKS, re.MULTILINE)) for name in TOOLS}
    named_versions = {
        name: {version} for tool, version, *_ in rows("docs/integrations.md", r"\| \w") for name in TOOLS if name in tool.lower()
    }
    assert named_versions == locked_versions


def test_the_rules_for_programs_fit_on_one_page():
    assert len((ROOT / "AGENTS.md").read_text().splitlines()) <= 60, "move what is reference to docs/"


@pytest.mark.parametrize("document", DOCUMENTS, ids=named)
def test_every_target_of_make_that_a_document_names_exists(document):
    tiers = re.search(r"^TIERS := (.+)$", MAKEFILE, re.MULTILINE)[1].split()
    targets = {*re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE), *(f"test-{tier}" for tier in tiers)}
    assert [
        target for target in re.findall(r"(?:^|`)make ([a-z][a-z0-9-]*)", document.read_text(), re.MULTILINE) if target not in targets
    ] == []


def test_the_drawing_is_that_of_the_domains():
    drawn = runpy.run_path(str(ROOT / "docs" / "architecture.py"))["drawing"]()
    assert (ROOT / "docs" / "architecture.svg").read_text() == drawn, "draw it anew: python docs/architecture.py"


def test_a_figure_beside_a_link_to_the_measurements_is_a_measured_one():
    measured = (ROOT / "docs" / "measured.md").read_text()
    lines = [line for line in (ROOT / "README.md").read_text().splitlines() if "measured.md#" in line]
    figures = [figure for line in lines for figure in re.findall(r"[\d.]+ (?:s|MB|GB a day)\b", line)]
    assert figures
    assert [figure for figure in figures if figure not in measured] == []


def test_the_jars_are_as_large_as_the_readme_says():
    fetched = sum(artifact.bytes for bundle in bundles(Settings()) for artifact in locked(bundle))
    assert f" and {size_text(fetched)} of Java libraries." in (ROOT / "README.md").read_text()


@pytest.mark.parametrize("document", ["README.md", "docs/compose.md"])
def test_the_faults_of_the_demo_are_the_documented_ones(document):
    faults = dict(zip(FAULTS[::2], FAULTS[1::2], strict=True))
    percent = {name: f"{100 * float(faults[option]):g} %" for name, option in WORDS.items()}
    text = (ROOT / document).read_text()
    assert [f"{share} {name}" for name, share in percent.items() if not re.search(rf"{share} (are )?{name}", text)] == []


def test_containers_have_the_faults_of_the_demo_and_simulated_edits():
    compose = " ".join((ROOT / "docker-compose.yaml").read_text().split())
    assert compose.count(" ".join(FAULTS)) == 3
    assert [line for line in (ROOT / ".env").read_text().splitlines() if line and not line.startswith("#")] == [
        "COMPOSE_PROFILES=simulated"
    ]


def test_the_limits_of_the_containers_are_the_documented_ones_and_their_sum():
    compose = (ROOT / "docker-compose.yaml").read_text().replace("mem_limit: 128m", "", 1)  # of `topics`, which ends before the others run
    compose = re.sub(r"  audit:\n.*?mem_limit: 448m", "", compose, count=1, flags=re.DOTALL)  # only with its profile
    table = (ROOT / "docs" / "compose.md").read_text().partition("memory limit |")[2].partition("| audit ")[0]
    cells = " ".join(line.rpartition(" | ")[2] for line in table.splitlines())
    *limits, together = [int(figure.replace(",", "")) for figure in re.findall(r"([\d,]+) MB", cells)]
    assert sorted(limits) == sorted(int(limit) for limit in re.findall(r"mem_limit: (\d+)m", compose))
    assert together == sum(limits) <= GIGABYTES["docs/compose.md"] * 1024


@pytest.mark.parametrize(("document", "gigabytes"), GIGABYTES.items())
def test_each_document_asks_for_the_memory_that_doctor_expects(document, gigabytes):
    assert f"{gigabytes} GB of memory" in (ROOT / document).read_text()
    assert gigabytes * 1e9 == machine.TOTAL_BYTES


def test_the_topics_grow_by_the_sum_of_what_each_grows():
    text = (ROOT / "docs" / "measured.md").read_text()
    (together,) = re.findall(r"grow by (\d+\.\d) GB a day", text)
    assert f"{sum(map(float, re.findall(r'`[a-z-]+` by ([0-9.]+)', text))):.1f}" == together


def test_doctor_says_what_the_demo_was_measured_to_take():
    assert f"{machine.DEMO_BYTES / 2**30:.2f} GiB in " in (ROOT / "docs" / "measured.md").read_text()


def test_the_code_names_documents_that_exist():
    sources = [
        path
        for room in ("audit", "contract", "dashboard", "infrastructure", "pipeline", "producers", "streamgauge")
        for path in (ROOT / room).rglob("*.py")
    ]
    sources += [ROOT / "Makefile", ROOT / "Dockerfile", ROOT / "docker-compose.yaml", *(ROOT / "deploy").rglob("*.yaml")]
    missing = {name for source in sources for name in re.findall(r"docs/[\w/-]+\.md", source.read_text()) if not (ROOT / name).exists()}
    assert missing == set()


def test_the_lines_that_newcomers_meet_are_those_of_the_code():
    code = "".join(
        path.read_text()
        for room in ("audit", "contract", "infrastructure", "pipeline", "producers", "streamgauge")
        for path in (ROOT / room).rglob("*.py")
    )
    code += (ROOT / "Makefile").read_text()
    printed = re.findall(r"\*\*`(.+?)`\*\*", (ROOT / "docs" / "trouble.md").read_text())
    assert printed
    assert [line for line in printed if line not in code] == []


@pytest.mark.parametrize("page", ["architecture.md", "articles.md"])
def test_a_page_names_functions_that_are_where_it_says(page):
    named_there = re.findall(r"`(\w+)` in \[([^]]+)\]", (ROOT / "docs" / page).read_text())
    assert named_there
    assert [name for name, path in named_there if not re.search(rf"^(def|class) {name}\b", (ROOT / path).read_text(), re.MULTILINE)] == []


@pytest.mark.parametrize(
    ("walk", "counted", "most"),
    [
        ("The way of a record", "jumps", 7),
        ("A failed query starts again", "files", 8),
        ("What `make demo` does", "jumps", 8),
    ],
)
def test_a_walk_through_the_code_is_short(walk, counted, most):
    (section,) = re.findall(
        rf"^## {re.escape(walk)}\n(.*?)(?=^## )", (ROOT / "docs" / "architecture.md").read_text(), re.MULTILINE | re.DOTALL
    )
    files = [name for name in re.findall(r"^\d+\. [^[]*\[([^]]+)\]", section, re.MULTILINE) if (ROOT / name).is_file()]
    assert len(files) == section.count("\n1. ") + len(re.findall(r"^[2-9]\. ", section, re.MULTILINE)), "each step names its file"
    found = len(set(files)) if counted == "files" else sum(one != other for one, other in pairwise(files))
    assert found <= most


def test_the_readme_stays_short():
    lines = (ROOT / "README.md").read_text().splitlines()
    assert len(lines) <= 100, "move what is reference to docs/"


def test_the_walk_to_a_new_domain_quotes_its_files():
    code = "\n".join(path.read_text() for path in (ROOT / "tests" / "weather").rglob("*.py"))
    for quoted in re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "add-a-domain.md").read_text(), re.DOTALL):
        assert quoted in code, f"no file in tests/weather has:\n{quoted}"


def test_no_page_is_newer_than_its_picture():
    screenshots = runpy.run_path(str(ROOT / "docs" / "screenshots.py"))
    taken_of = json.loads(screenshots["TAKEN_OF"].read_text())
    newer = sorted(name for name, code in screenshots["code_of"]().items() if taken_of.get(name) != code)
    assert newer == [], "take the pictures anew, or say that the pages look as before: see docs/screenshots.py"
