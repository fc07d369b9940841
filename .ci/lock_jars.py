"""Creates infrastructure/java/jars.lock from jars.toml: `make jars-lock`.

Needed only to change a version. Requires Maven (`mvn`) on the PATH. Users download by the lock, without Maven.
"""

import hashlib
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path, PurePath
from typing import Any

import tomli_w

from infrastructure.java.coordinates import Coordinate

HERE = Path(__file__).parents[1] / "infrastructure" / "java"
HEADER = "# Made by `make jars-lock` from jars.toml; do not edit. One table an artifact, checked by SHA-256 when it is fetched.\n\n"


def pom(artifacts: list[Coordinate]) -> str:
    """A Maven project that depends only on `artifacts`."""
    dependencies = "".join(
        f"<dependency><groupId>{a.group}</groupId><artifactId>{a.artifact}</artifactId><version>{a.version}</version>"
        f"<type>{a.type}</type>{f'<classifier>{a.classifier}</classifier>' if a.classifier else ''}</dependency>"
        for a in artifacts
    )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>streamgauge</groupId><artifactId>lock</artifactId><version>0</version>"
        f"<packaging>pom</packaging><dependencies>{dependencies}</dependencies></project>"
    )


def with_requirements(artifacts: list[Coordinate], folder: Path) -> dict[Coordinate, Path]:
    """Copies `artifacts` and their runtime dependencies into `folder`, using Maven."""
    folder.mkdir()
    (folder / "pom.xml").write_text(pom(artifacts))
    _maven(
        "-f",
        str(folder / "pom.xml"),
        "dependency:copy-dependencies",
        "-DincludeScope=runtime",
        "-Dmdep.useRepositoryLayout=true",
        f"-DoutputDirectory={folder / 'out'}",
    )
    files = [path for path in (folder / "out").rglob("*") if path.is_file() and not path.name.startswith("maven-metadata")]
    return {coordinate_of(path.relative_to(folder / "out")): path for path in files}


def coordinate_of(path: PurePath) -> Coordinate:
    """The coordinate of a file by its `path` in a Maven repository, e.g. org/slf4j/slf4j-api/2.0/slf4j-api-2.0.jar."""
    *group, artifact, version, name = path.parts
    classifier, _, type_ = name.removeprefix(f"{artifact}-{version}").removeprefix("-").partition(".")
    return Coordinate(".".join(group), artifact, version, type_, classifier)


def alone(artifacts: list[Coordinate], folder: Path) -> dict[Coordinate, Path]:
    """Copies `artifacts` without dependencies into `folder`, using Maven. Their poms are not read."""
    for a in artifacts:
        named = ":".join(part for part in (a.group, a.artifact, a.version, a.type, a.classifier) if part)
        _maven("dependency:copy", f"-Dartifact={named}", f"-DoutputDirectory={folder}")
    return {a: folder / a.file_name for a in artifacts}


def _maven(*arguments: str) -> None:
    subprocess.run(["mvn", "-q", "-B", *arguments], check=True, stdout=sys.stderr)


def lock(requests: dict[str, Any], workplace: Path) -> list[dict[str, str | int]]:
    """The rows of the lock file, for every bundle of jars.toml."""
    rows: list[dict[str, str | int]] = []
    for name, bundle in requests["bundle"].items():
        purposes = {Coordinate.parse(entry["coordinate"]): entry["for"] for entry in bundle["artifacts"]}
        transitive_purpose = f"required by {next(iter(purposes)).artifact}"
        files = (with_requirements if bundle["transitive"] else alone)(list(purposes), workplace / name)
        for coordinate, path in sorted(files.items()):
            rows.append(
                {
                    "bundle": name,
                    "coordinate": str(coordinate),
                    "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
                    "bytes": path.stat().st_size,
                    "for": purposes.get(coordinate, transitive_purpose),
                }
            )
    return rows


def main() -> None:
    """Writes jars.lock next to jars.toml."""
    requests = tomllib.loads((HERE / "jars.toml").read_text())
    with tempfile.TemporaryDirectory() as workplace:
        rows = lock(requests, Path(workplace))
    (HERE / "jars.lock").write_text(HEADER + tomli_w.dumps({"artifact": rows}))
    sys.stderr.write(f"jars.lock: {len(rows)} artifacts, {sum(int(row['bytes']) for row in rows) / 1e6:.0f} MB\n")


if __name__ == "__main__":
    main()
