"""Compares the checkpoints with the queries of the code."""

from collections import Counter
from collections.abc import Callable

from contract.checkpoints import names as checkpoint_names
from contract.checkpoints.names import CheckpointName, CheckpointPlace
from contract.settings import Settings
from streamgauge.operations.doctor.findings import Finding

_CONSOLE = "-console"


def _names_of_code(settings: Settings) -> set[CheckpointName]:
    from pipeline.catalog import all_queries  # imports Spark, which takes a second or more

    return {query.checkpoint_name for query in all_queries(settings)}


def checkpoints(settings: Settings, names_of_code: Callable[[Settings], set[CheckpointName]] = _names_of_code) -> list[Finding]:
    """Checks that the code would use each checkpoint, and reports which are in use now.

    names_of_code: returns the names of the checkpoints that the code would use; not called when there are none.
    """
    found = checkpoint_names.checkpoints(settings)
    if not found:
        return [Finding("checkpoints", "note", f"none yet in {settings.checkpoints}")]
    of_code = names_of_code(settings)
    findings = [finding for place in found if (finding := _examined(place, of_code)) is not None]
    users = Counter(driver.pid for place in found if (driver := place.driver) is not None)
    in_use = "; ".join(f"{count} in use by the Spark driver with pid {pid}" for pid, count in users.items()) or "none in use"
    well = len(found) - len(findings)
    return [Finding("checkpoints", "ok", f"{well} of {len(found)} are of the queries and versions of this code; {in_use}"), *findings]


def _examined(place: CheckpointPlace, of_code: set[CheckpointName]) -> Finding | None:
    name = place.name
    own = next((one for one in of_code if one.query == name.query.removesuffix(_CONSOLE)), None)
    if own is None:
        message = f"{name} is of no query of this code"
        return Finding("checkpoints", "warning", message, f"is the code of another branch? If it is a leftover, delete {place.folder}*")
    if own.version != name.version:
        message = f"{name} is of version {name.version}; the code has version {own.version}, which recounts from the start"
        return Finding("checkpoints", "warning", message, f"unless you go back to the older code, delete {place.folder}*")
    return None
