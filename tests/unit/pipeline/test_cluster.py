"""What a cluster is told, and what is refused before it is asked for anything."""

import socket
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace

import pytest
from messages import absent, refused
from running import settings_on_free_ports

from pipeline.spark import cluster
from pipeline.spark.cluster import check_shared, cluster_config


@pytest.fixture
def settings(tmp_path):
    return settings_on_free_ports(tmp_path / "home")


@contextmanager
def a_master():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"spark://127.0.0.1:{server.getsockname()[1]}"


def spark_that_writes(what):
    """A Spark whose executors write `what` for the rows that they were to read."""

    def write(path):
        from pathlib import Path

        Path(path).mkdir()
        (Path(path) / "part-00000").write_text(what)

    return SimpleNamespace(
        read=SimpleNamespace(text=lambda _: SimpleNamespace(write=SimpleNamespace(text=write))),
        sparkContext=SimpleNamespace(defaultParallelism=2, master="spark://m:7077"),
    )


@pytest.mark.parametrize("master", ["local[*]", "local[2]", "local-cluster[2,1,1024]"])
def test_a_local_master_keeps_to_loopback(settings, master):
    assert cluster_config(replace(settings, spark_master=master)) == {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
    }


def test_workers_find_the_driver_by_its_address_on_the_way_to_them(settings):
    with a_master() as master:
        config = cluster_config(replace(settings, spark_master=master, shared_home=True))
        assert (config["spark.driver.host"], config["spark.driver.bindAddress"]) == ("127.0.0.1", "127.0.0.1")
        named = cluster_config(replace(settings, spark_master=master, shared_home=True, driver_host="driver.example"))
        assert (named["spark.driver.host"], named["spark.driver.bindAddress"]) == ("driver.example", "127.0.0.1")


def test_what_it_takes_of_the_cluster(settings):
    with a_master() as master:
        chosen = replace(settings, spark_master=master, shared_home=True, executor_memory="512m", executor_cores=2, max_cores=6)
        config = cluster_config(chosen)
        assert (config["spark.executor.memory"], config["spark.executor.cores"], config["spark.cores.max"]) == ("512m", "2", "6")
        assert not {"spark.executor.cores", "spark.cores.max"} & set(cluster_config(replace(chosen, executor_cores=None, max_cores=None)))


def test_folders_of_one_machine_are_refused(settings):
    ways_out = ("STREAMGAUGE_SHARED_HOME=true", "CHECKPOINT_URI", "LAKE_URI", "SPARK_MASTER=local[*]")
    with refused("SPARK_MASTER=spark://host:7077", f"STREAMGAUGE_HOME={settings.home}", *ways_out):
        cluster_config(replace(settings, spark_master="spark://host:7077"))


def test_so_is_a_lake_of_one_machine(settings):
    with refused("LAKE_URI=/tables"):
        cluster_config(replace(settings, spark_master="spark://host:7077", lake_uri="/tables"))


def test_with_all_in_an_object_store_no_folder_has_to_be_shared(settings, monkeypatch):
    monkeypatch.setattr(cluster, "address_towards", lambda _: "10.0.0.5")
    chosen = replace(settings, spark_master="spark://10.0.0.1:7077", kafka_bootstrap_servers="kafka:9092")
    tables, checkpoints = "s3a://lake/tables", "s3a://lake/checkpoints"
    for one in ({"lake_uri": tables}, {"checkpoint_uri": checkpoints}):
        with refused(f"STREAMGAUGE_HOME={settings.home}"):
            cluster_config(replace(chosen, **one))
    with refused("LAKE_URI=/tables"):
        cluster_config(replace(chosen, lake_uri="/tables", checkpoint_uri=checkpoints))
    cluster_config(replace(chosen, lake_uri=tables, checkpoint_uri=checkpoints))


def test_a_kafka_that_workers_cannot_reach_is_refused(settings, monkeypatch):
    monkeypatch.setattr(cluster, "address_towards", lambda _: "10.0.0.5")
    chosen = replace(settings, spark_master="spark://10.0.0.1:7077", shared_home=True)
    with refused("127.0.0.1", "KAFKA_BOOTSTRAP_SERVERS"):
        cluster_config(chosen)
    assert cluster_config(replace(chosen, kafka_bootstrap_servers="kafka:9092"))["spark.driver.host"] == "10.0.0.5"


def test_a_folder_is_shared_when_each_sees_what_the_other_writes(tmp_path):
    check_shared(spark_that_writes("1\n0\n"), tmp_path)
    assert list(tmp_path.iterdir()) == [], "what was written to find out should be gone"


def test_a_folder_of_the_same_name_on_another_machine_is_not_shared(tmp_path):
    with refused(str(tmp_path), "2 rows", "1 "):
        check_shared(spark_that_writes("1\n"), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_worker_that_failed_is_named():
    told = "Job aborted\nLost task 0.3 in stage 0.0 (TID 3) (10.0.0.7 executor 1): java.io.FileNotFoundException: File file:/home/x does not exist\n\tat"
    assert absent(cluster._first_failure(told), "10.0.0.7", "java.io.FileNotFoundException: File file:/home/x does not exist") == []
    assert cluster._first_failure("[PATH_NOT_FOUND] no\nmore") == "[PATH_NOT_FOUND] no"
