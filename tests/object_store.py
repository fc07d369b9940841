"""A real server that speaks S3's protocol, on loopback."""

import logging

from moto.server import ThreadedMotoServer

CREDENTIALS = {"aws_access_key_id": "k", "aws_secret_access_key": "s", "region_name": "us-east-1"}


class ObjectStore:
    """What it holds outlives a stop, and it comes back at its address."""

    port = 0

    def start(self):
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

        return boto3.client("s3", endpoint_url=self.address, **CREDENTIALS)
