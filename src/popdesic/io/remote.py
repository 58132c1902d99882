"""Objects of a store, `s3://bucket/key` and `gs://bucket/key`, which are read where they are.

Their addresses are a type of their own, because a `Path` would make one slash of two. Listing what
lies below an address gives the size and the ETag of each object. All that is read of them must
have these, so a job never mixes two versions of an object. Nothing is kept on disk.
obstore is an optional dependency, imported on first use. Nothing compiled is imported here.
"""

from __future__ import annotations

import functools
import importlib.util
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from ..core.errors import UserError, shorten
from ..core.files import digest

#: How the address of an object begins; and those that are read.
SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
KNOWN = ("s3://", "gs://")
#: What a URL reads as something else than a key, and names and passwords, which are never shown.
NO_KEY, PASSWORD = re.compile(r"[#?%]"), re.compile(r"(?<=://)[^/]*@")
#: How often a request is repeated, and the longest wait for a connection and for all of it.
RETRIES, CONNECT, WHOLE = 5, timedelta(seconds=5), timedelta(minutes=10)
#: Codes of S3 for a bucket that is not there, and for keys that are wrong or may not read.
NO_BUCKET = ("NoSuchBucket", "The specified bucket does not exist")
REFUSED = ("InvalidAccessKeyId", "SignatureDoesNotMatch", "AccessDenied", "ExpiredToken")
#: Codes of a used quota or of too many requests, which Google answers as refused access.
QUOTA = re.compile(
    r"\w*(?:SlowDown|TooManyRequests|[Ll]imitExceeded|[Qq]uota)\w*|429 Too Many Requests"
)
#: Ends of files, of which none is read in an object store.
FILES = (".vcf", ".vcf.gz", ".vcf.bgz", ".bcf", ".bed", ".pgen", ".geno", ".trees")
#: What is in an error if the environment has no keys, or one of two. Machines of a cloud ask these
#: servers for keys, and so does the client.
NO_KEYS = ("169.254.169.254", "metadata.google.internal", "Missing AccessKeyId", "Missing Secret")
#: Variables that name keys, by scheme.
KEYS = {
    "s3://": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (or AWS_SKIP_SIGNATURE=true for a public "
    "bucket; AWS_REGION and AWS_ENDPOINT_URL if needed)",
    "gs://": "GOOGLE_SERVICE_ACCOUNT or GOOGLE_APPLICATION_CREDENTIALS (or "
    "GOOGLE_SKIP_SIGNATURE=true for a public bucket)",
}


@dataclass(frozen=True)
class Remote:
    """The address of an object, or of all objects below it."""

    url: str

    def __str__(self) -> str:
        return self.url

    @property
    def name(self) -> str:
        """The last part, as of a path."""
        return self.url.rpartition("/")[2]


def is_remote(source: Path | Remote | str) -> bool:
    """Whether a source is the address of an object, of any scheme."""
    return isinstance(source, Remote) or (isinstance(source, str) and bool(SCHEME.match(source)))


def located(source: Path | Remote | str, folder: Path = Path()) -> Path | Remote:
    """The path of a source, relative to `folder`, or its address."""
    if isinstance(source, Remote):
        return source
    return Remote(str(source).rstrip("/")) if is_remote(source) else folder / source


class Objects:
    """The objects below an address, by their keys from there.

    `stamps` has the size and the ETag (or date) of each when it was listed. `headers` are those
    small ones that zarr asks for again and again.
    """

    def __init__(self, remote: Remote, client: Any, stamps: Mapping[str, tuple[int, str]]) -> None:
        self.remote, self.client, self.stamps = remote, client, stamps
        self.headers: dict[str, bytes] = {}

    @property
    def n_bytes(self) -> int:
        """Of all objects."""
        return sum(size for size, _ in self.stamps.values())

    def key(self) -> str:
        """Digest of names, sizes and ETags: it changes with any object."""
        return digest("\n".join(f"{k} {size} {tag}" for k, (size, tag) in self.stamps.items()))

    async def read(self, key: str, part: Any = None) -> bytes | None:
        """Read an object, or a `part` as obstore takes it; None if it was not listed.

        Raises
        ------
        UserError
            It cannot be read, or is not the one that was listed.
        """
        import obstore

        if key not in self.stamps:
            return None
        try:
            found = await obstore.get_async(
                self.client, key, options={} if part is None else {"range": part}
            )
            data = bytes(await found.bytes_async())
        except FileNotFoundError:
            raise self._changed(key) from None
        except (obstore.exceptions.BaseError, OSError) as error:
            raise unreadable(Remote(f"{self.remote}/{key}"), error) from None
        if _stamp(found.meta) != self.stamps[key]:
            raise self._changed(key)
        return data

    def _changed(self, key: str) -> UserError:
        return UserError(f"{self.remote}/{key} was changed while it was read; run again.")


def list_anew(remote: Remote) -> Objects:
    """List the objects below an address.

    Raises
    ------
    UserError
        obstore is not installed; the scheme is another; the address has a password or one of #, ?
        and %, or is that of a file; there is no such bucket or object; keys are wrong; a quota is
        used up; or the server does not answer.
    """
    if PASSWORD.search(remote.url):
        raise UserError(
            f"{PASSWORD.sub('', remote.url)} was given with a name or password before @, which "
            "results and logs would show; remove it, and set keys in the environment."
        )
    if odd := NO_KEY.search(remote.url):
        raise UserError(
            f"{remote} has the character {odd[0]}, with which another key would be read; rename "
            "the folder in the store."
        )
    scheme = f"{remote.url.partition('://')[0]}://"
    if scheme not in KNOWN:
        raise UserError(
            f"{remote}: {scheme} is not read; give s3:// (AWS_ENDPOINT_URL for a server other than "
            "Amazon's) or gs://, or copy the data to this machine."
        )
    if remote.url.endswith(FILES):
        raise UserError(
            f"{remote}: only VCF-Zarr is read from an object store; copy this file and those that "
            "belong to it to this machine, or write VCF-Zarr of them with bio2zarr."
        )
    if importlib.util.find_spec("obstore") is None:
        raise UserError(
            f"{remote}: object stores are read with the package obstore, which is not installed; "
            "install it with `pip install obstore`, or copy the data to this machine."
        )
    import obstore
    from obstore.store import from_url

    try:
        client = from_url(
            remote.url,
            client_options={"allow_http": True, "connect_timeout": CONNECT, "timeout": WHOLE},
            retry_config={"max_retries": RETRIES, "retry_timeout": WHOLE},
        )
        listed = [one for some in obstore.list(client) for one in some]
    except (obstore.exceptions.BaseError, OSError, ValueError) as error:
        raise unreadable(remote, error) from None
    if not listed:
        raise UserError(
            f"{remote} has no objects below it; correct the key (VCF-Zarr, a folder of objects, is "
            "what is read from an object store; copy other files to this machine)."
        )
    stamps = {one["path"]: _stamp(one) for one in listed}
    return Objects(remote, client, dict(sorted(stamps.items())))


@functools.lru_cache(maxsize=4096)
def list_objects(remote: Remote) -> Objects:
    """`list_anew`, once in a process: all that it reads is of the versions of that list."""
    return list_anew(remote)


def _stamp(about: Mapping[str, Any]) -> tuple[int, str]:
    """Size and ETag of an object; of a server without ETags its date."""
    return int(about["size"]), str(about["e_tag"] or about["last_modified"]).strip('"')


def unreadable(remote: Remote, error: Exception) -> UserError:
    """One sentence for what an object store answered."""
    text = str(error).partition("Debug source")[0]
    keys = KEYS[next(scheme for scheme in KNOWN if remote.url.startswith(scheme))]
    if any(word in text for word in NO_BUCKET):
        bucket = "/".join(remote.url.split("/")[:3])
        return UserError(f"{remote}: there is no bucket {bucket}; correct the name.")
    if any(word in text for word in NO_KEYS):
        return UserError(f"{remote}: no access keys were found; set {keys}.")
    if found := QUOTA.search(text):
        return UserError(
            f"{remote}: the store refused because a quota was used up or requests were too many "
            f"({found[0]}); run again later, with fewer --cores: what is finished stays."
        )
    code = next((word for word in REFUSED if word in text), "")
    if code or "403 Forbidden" in text or "401 Unauthorized" in text:
        shown = f" ({code})" if code else ""
        return UserError(f"{remote}: the store refused access{shown}; set {keys}.")
    reason = shorten(" ".join(text.split()), 300)
    return UserError(
        f"{remote} could not be read, even when tried again ({reason}); check the network and "
        "AWS_ENDPOINT_URL, and run again: what is finished stays."
    )
