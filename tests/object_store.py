"""A real server that speaks S3's protocol, on loopback."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

CREDENTIALS = {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "a-secret-that-nobody-may-see", "AWS_REGION": "us-east-1"}
"""It lets everybody in, and clients want some: these, in their environment."""


class ObjectStore:
    """What it holds outlives a stop, and it comes back at its address."""

    port = 0

    def start(self):
        from moto.server import ThreadedMotoServer  # tiers without a store need not load it

        logging.getLogger("werkzeug").setLevel(logging.WARNING)  # or a failure would be buried under a line a request
        self._server = ThreadedMotoServer(ip_address="127.0.0.1", port=self.port, verbose=False)
        self._server.start()
        _, self.port = self._server.get_host_and_port()

    def stop(self):
        self._server.stop()

    @property
    def address(self):
        return f"http://127.0.0.1:{self.port}"

    @property
    def client(self):
        import boto3

        key, secret, region = CREDENTIALS.values()
        return boto3.client("s3", endpoint_url=self.address, aws_access_key_id=key, aws_secret_access_key=secret, region_name=region)


@contextmanager
def running_store(bucket: str) -> Iterator[ObjectStore]:
    """The server, with that bucket, which is empty."""
    store = ObjectStore()
    store.start()
    try:
        store.client.create_bucket(Bucket=bucket)
        yield store
    finally:
        store.stop()
