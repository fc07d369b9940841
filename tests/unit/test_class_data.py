"""The archive of a Java program's classes."""

import os

import pytest

from infrastructure.java import class_data


@pytest.mark.parametrize("changed", ["java", "a.jar"])
def test_a_java_or_a_jar_that_is_installed_again_at_its_path_has_another_archive(tmp_path, changed):
    java, jar = tmp_path / "java", tmp_path / "a.jar"
    java.touch()
    jar.touch()
    before = class_data.archive_for(java, [jar], tmp_path)
    assert class_data.archive_for(java, [jar], tmp_path) == before
    os.utime(tmp_path / changed, (0, 0))
    assert class_data.archive_for(java, [jar], tmp_path) != before
