"""A server of S3 for tests: localbucket, with a door that checks keys, cuts answers and counts."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import zarr
from numcodecs import Blosc

#: The keys that the door lets in.
KEY, SECRET = "AKIDPOPDESIC", "secret"
#: Size of `write_store`.
N_SITES, N_SAMPLES = 40, 5


class Door:
    """What a running server does: `cuts` answers are broken off, `read` lists paths and ranges.

    `refusal`: status and code with which it answers all requests.
    """

    def __init__(self, root: Path, port: int) -> None:
        self.root, self.port, self.cuts = root, port, 0
        self.lock = threading.Lock()  # answers come from several threads
        self.read: list[tuple[str, str]] = []
        self.before: dict[str, object] = {}
        self.refusal: tuple[int, str] | None = None

    @property
    def variables(self) -> dict[str, str]:
        """The environment of a client."""
        return {
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}",
            "NO_PROXY": "127.0.0.1",
        }


class Cut:
    """The answer of a server whose connection breaks in the middle of an object."""

    def __init__(self, handler: BaseHTTPRequestHandler) -> None:
        self.handler, self.file, self.begun = handler, handler.wfile, False

    def write(self, data: bytes) -> int:
        if self.begun:
            self.file.write(data[: len(data) // 2])
            self.file.flush()
            self.handler.close_connection = True
            self.handler.connection.shutdown(socket.SHUT_RDWR)
            raise ConnectionResetError
        self.begun = True  # the head is whole
        return self.file.write(data)

    def __getattr__(self, name: str) -> object:
        return getattr(self.file, name)


@contextmanager
def serving(root: Path) -> Iterator[Door]:
    """Serve the folders in `root` as buckets."""
    from localbucket import S3Handler

    class Handler(S3Handler):
        data_root = root.resolve()
        disable_nagle_algorithm = True

        def log_message(self, format: str, *args: object) -> None:
            pass

        def do_GET(self) -> None:  # noqa: N802 - the name that http.server calls
            refusal = door.refusal
            if f"Credential={KEY}/" not in self.headers.get("Authorization", ""):
                refusal = 403, "InvalidAccessKeyId"
            if refusal:
                body = f"<Error><Code>{refusal[1]}</Code></Error>".encode()
                self.send_response(refusal[0])
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
                return
            path = self.path.partition("?")[0]
            door.read.append((path, self.headers.get("Range", "")))
            for end in [end for end in door.before if path.endswith(end)]:
                door.before.pop(end)()  # type: ignore[operator]
            with door.lock:
                cut = door.cuts > 0 and "list-type" not in self.path
                door.cuts -= cut
            if cut:
                self.wfile = Cut(self)
            with suppress(ConnectionResetError):
                super().do_GET()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    door = Door(root, server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield door
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def write_store(folder: Path, seed: int = 1, zarr_format: int = 2, shards: bool = False) -> Path:
    """Write VCF-Zarr with chunks of 8 sites and 2 samples, compressed as by bio2zarr."""
    rng = np.random.default_rng(seed)
    group = zarr.open_group(str(folder), mode="w", zarr_format=zarr_format)
    letters = np.array(list("ACGT"), object)
    ref = rng.integers(0, 4, N_SITES)
    arrays = {
        "sample_id": np.array([f"p{k}" for k in range(N_SAMPLES)], "U8"),
        "contig_id": np.array(["1", "2"], "U8"),
        "contig_length": np.array([5000, 4000]),
        "variant_contig": np.repeat([0, 1], N_SITES // 2).astype(np.int8),
        "variant_position": np.tile(np.arange(1, N_SITES // 2 + 1), 2).astype(np.int32) * 10,
        "variant_id": np.array([f"rs{k}" for k in range(N_SITES)], "U8"),
        "variant_allele": letters[np.stack([ref, (ref + 1) % 4], 1)].astype("U8"),
        "call_genotype": rng.integers(0, 2, (N_SITES, N_SAMPLES, 2)).astype(np.int8),
    }
    arrays["call_genotype"][::9, 1] = -1
    for name, values in arrays.items():
        chunks = tuple(min(8 if k == 0 else 2, size) for k, size in enumerate(values.shape))
        more: dict = {"shards": (16, 6, 2)} if shards and name == "call_genotype" else {}
        if zarr_format == 2 and values.dtype.kind == "i":  # as bio2zarr compresses
            more["compressors"] = Blosc("zstd")
        group.create_array(name, data=values, chunks=chunks, **more)
    if zarr_format == 2:
        zarr.consolidate_metadata(str(folder))
    return folder
