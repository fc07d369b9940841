"""The archive of the workshop packs equal files once, as .ci/link_copies.py makes them one file."""

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / ".ci" / "link_copies.py"


def test_equal_files_become_one_and_others_stay_as_they_are(tmp_path):
    large = b"jar" * 100_000
    contents = {"a/jar": large, "b/jar": large, "b/other": large[:-1] + b"!", "a/small": b"x", "b/small": b"x"}
    for name, content in contents.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
    done = subprocess.run([sys.executable, SCRIPT, tmp_path], capture_output=True, text=True, check=True)
    assert done.stdout == "0 MB in copies\n"
    assert {name: (tmp_path / name).read_bytes() for name in contents} == contents
    assert {name for name in contents if (tmp_path / name).stat().st_nlink == 2} == {"a/jar", "b/jar"}
