"""Ends the program if Python would import another package than Streamgauge's own: PYTHONPATH goes before the folder of the installation."""

import sys
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[1]

for name in ("audit", "contract", "dashboard", "infrastructure", "pipeline", "producers"):
    spec = find_spec(name)
    if spec is None or Path(spec.origin or "").parent != ROOT / name:
        location = "none" if spec is None else spec.origin or next(iter(spec.submodule_search_locations or ()))
        sys.stderr.write(
            f"error: Python finds {location} as package {name}, and not {ROOT / name}; remove that folder from PYTHONPATH, or rename the package in it\n"
        )
        sys.exit(2)
