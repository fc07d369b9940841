"""A real server that speaks S3's protocol, on loopback."""

import logging

CREDENTIALS = {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "a-secret-that-nobody-may-see", "AWS_REGION": "us-east-1"}
"""The server accepts any credentials, and clients require some: these, in their environment."""


class ObjectStore:
    """A server at a port of loopback. Its objects outlive a stop."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._server = None

    def start(self):
        """Starts it, unless it runs."""
        from moto.server import ThreadedMotoServer  # tests without a store need not load it

        if self._server is None:
            logging.getLogger("werkzeug").setLevel(logging.WARNING)  # a line for each request would bury a failure
            self._server = ThreadedMotoServer(ip_address="127.0.0.1", port=self.port, verbose=False)
            self._server.start()

    def stop(self):
        if self._server is not None:
            self._server.stop()
            self._server = None

    def empty(self, bucket: str) -> None:
        """Starts it if it was stopped, and leaves `bucket` with no object."""
        self.start()
        self.client.create_bucket(Bucket=bucket)  # in this region, S3 accepts a bucket that exists
        for page in self.client.get_paginator("list_objects_v2").paginate(Bucket=bucket):
            if objects := [{"Key": found["Key"]} for found in page.get("Contents", ())]:
                self.client.delete_objects(Bucket=bucket, Delete={"Objects": objects})

    @property
    def address(self):
        return f"http://127.0.0.1:{self.port}"

    @property
    def client(self):
        import boto3

        key, secret, region = CREDENTIALS.values()
        return boto3.client("s3", endpoint_url=self.address, aws_access_key_id=key, aws_secret_access_key=secret, region_name=region)
