"""VCF-Zarr in an object store, of a server of S3 on this machine: the bytes of the folder."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

import numpy as np
import pytest
import zarr
from support.object_server import N_SAMPLES, N_SITES, serving, write_store

from popdesic.cohort.ingest import ingest_cohort
from popdesic.cohort.sources import expand_sources, file_key
from popdesic.core.errors import UserError
from popdesic.io.remote import Remote, is_remote, list_objects, located
from popdesic.io.zarr_store import open_store
from popdesic.study.configuration import read_config
from popdesic.study.init import init_study
from popdesic.study.validation import validate_study

NEEDED = ("obstore", "localbucket")
pytestmark = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in NEEDED),
    reason="pip install obstore localbucket",
)
URL = "s3://cohorts/people/one.vcz"


def decoded(source: object, out: Path) -> list[bytes]:
    """Decode a source in a process that has listed nothing; the bytes of the files and counts."""
    list_objects.cache_clear()
    ingest_cohort(source, out / "raw", threads=2)  # type: ignore[arg-type]
    about = json.loads((out / "raw.json").read_text())
    files = [(out / f"raw{end}").read_bytes() for end in (".bed", ".bim", ".fam")]
    return [*files, json.dumps([about["counts"], about["source_bytes"]]).encode()]


@pytest.fixture
def door(tmp_path, monkeypatch):
    """A server with one store, and its keys in the environment."""
    with serving(tmp_path / "served") as door:
        for name, value in door.variables.items():
            monkeypatch.setenv(name, value)
        door.store = write_store(door.root / "cohorts/people/one.vcz")
        list_objects.cache_clear()
        yield door
    list_objects.cache_clear()


def refused(out: Path, url: str = URL) -> str:
    with pytest.raises(UserError) as error:
        decoded(url, out)
    assert len(re.findall(r"(?<=[a-z])\. [A-Z]", str(error.value))) == 0, error.value
    return str(error.value)


def test_addresses():
    assert located("s3://b/a/x.vcz/", Path("study")) == Remote("s3://b/a/x.vcz")
    assert located("data/x.vcf", Path("study")) == Path("study/data/x.vcf")
    assert (
        str(located("s3://b/x.vcz")) == "s3://b/x.vcz" and located("s3://b/x.vcz").name == "x.vcz"
    )
    assert is_remote("https://x.org/y") and not is_remote("C:/x") and not is_remote(Path("s3:/b"))
    assert expand_sources("s3://b/x.vcz, s3://b/y.vcz") == ["s3://b/x.vcz", "s3://b/y.vcz"]
    with pytest.raises(UserError, match=r"is a pattern.*list the addresses"):
        expand_sources("s3://b/chr{contig}.vcz")


@pytest.mark.filterwarnings("ignore:The data type")  # of texts in Zarr's format 3
@pytest.mark.parametrize(("zarr_format", "shards"), [(2, False), (3, False), (3, True)])
def test_a_store_gives_the_bytes_of_the_folder(tmp_path, door, zarr_format, shards):
    write_store(door.store, 1, zarr_format, shards)
    assert decoded(URL, tmp_path / "remote") == decoded(door.store, tmp_path / "local")
    parts = [part for path, part in door.read if "call_genotype/c/" in path]
    assert bool(any(parts)) == shards, "of a shard those bytes alone are read that hold chunks"


def test_no_array_is_read_that_is_not_needed_and_headers_once(tmp_path, door):
    group = zarr.open_group(str(door.store), mode="r+")
    for name in ("call_AD", "call_PL", "variant_info"):
        group.create_array(name, data=np.zeros((N_SITES, N_SAMPLES)), chunks=(8, 2))
    zarr.consolidate_metadata(str(door.store))
    decoded(URL, tmp_path / "remote")
    read = [path.partition(".vcz/")[2] for path, _ in door.read if ".vcz/" in path]
    assert not [path for path in read if path.split("/")[0] in ("call_AD", "call_PL")
                and not path.endswith((".zarray", ".zattrs"))]  # fmt: skip
    headers = [path for path in read if path.endswith((".zarray", ".zattrs", ".zmetadata"))]
    assert len(headers) == len(set(headers))
    genotypes = [path for path in read if re.fullmatch(r"call_genotype/\d.*", path)]
    assert len(genotypes) == len(set(genotypes)) == 15
    assert not [path for path in tmp_path.rglob("*.0.0") if "served" not in path.parts]


def test_a_broken_connection_is_tried_again(tmp_path, door, monkeypatch):
    expected = decoded(door.store, tmp_path / "local")
    door.cuts = 3
    assert decoded(URL, tmp_path / "remote") == expected and door.cuts == 0
    monkeypatch.setattr("popdesic.io.remote.RETRIES", 1)
    door.cuts = 10**6
    text = refused(tmp_path / "broken")
    assert URL in text and "could not be read, even when tried again" in text
    assert not (tmp_path / "broken/raw.bed").exists()
    with door.lock:  # requests that were on their way may still be answered
        door.cuts = 0
    assert decoded(URL, tmp_path / "broken") == expected


def test_faults_are_one_sentence(tmp_path, door, monkeypatch):
    monkeypatch.setattr("popdesic.io.remote.RETRIES", 1)
    out = tmp_path / "out"
    assert "there is no bucket s3://other; correct" in refused(out, "s3://other/one.vcz")
    assert "s3://cohorts/two.vcz has no objects" in refused(out, "s3://cohorts/two.vcz")
    assert "https:// is not read; give s3://" in refused(out, "https://localhost/one.vcz")
    assert "is not VCF-Zarr" in refused(out, f"{URL}/call_genotype")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "another")
    assert f"{URL}: the store refused access (InvalidAccessKeyId); set AWS_" in refused(out)
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    assert f"{URL}: no access keys were found; set AWS_ACCESS_KEY_ID" in refused(out)
    for name, value in door.variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    assert "check the network and AWS_ENDPOINT_URL" in refused(out)


QUOTA_ANSWERS = [
    (503, "SlowDown"),
    (429, "TooManyRequests"),
    (403, "QuotaExceeded"),
    (403, "rateLimitExceeded"),
]


@pytest.mark.parametrize("answer", QUOTA_ANSWERS, ids=str)
@pytest.mark.parametrize("at_once", [True, False])
def test_a_quota_is_one_sentence_and_the_next_run_continues(
    tmp_path, door, monkeypatch, answer, at_once
):
    """Before the objects are listed, and while they are read."""
    monkeypatch.setattr("popdesic.io.remote.RETRIES", 1)
    out = tmp_path / "out"
    if at_once:
        door.refusal = answer
    else:
        door.before["variant_position/2"] = lambda: setattr(door, "refusal", answer)
    text = refused(out)
    code = "429 Too Many Requests" if answer[0] == 429 else answer[1]
    assert text.startswith(URL) and f"({code}); run again later" in text
    assert not (out / "raw.bed").exists()
    assert at_once or not door.before
    door.refusal = None
    assert decoded(URL, out) == decoded(door.store, tmp_path / "local")


@pytest.mark.parametrize("name", ["one.bed", "one.pgen", "one.vcf.gz", "one.bcf"])
def test_files_are_refused_by_their_names(tmp_path, door, name):
    (door.root / "cohorts" / name).write_bytes(b"anything")
    assert "only VCF-Zarr is read from an object store" in refused(tmp_path, f"s3://cohorts/{name}")
    assert not door.read


@pytest.mark.parametrize("odd", ["one#2.vcz", "one%20.vcz", "one?x=1"])
def test_an_address_reads_no_other_key(tmp_path, door, odd):
    """A URL of `one#2.vcz` ends before #, where a store is."""
    write_store(door.root / "cohorts/one")
    assert f"has the character {odd[3]}" in refused(tmp_path, f"s3://cohorts/{odd}")


def test_a_password_in_an_address_is_refused_and_not_shown(tmp_path, door):
    text = refused(tmp_path, URL.replace("://", "://me:hidden@"))
    assert text.startswith(f"{URL} was given") and "hidden" not in text


def test_without_obstore_one_sentence_says_what_to_do(tmp_path, monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *a: None if name == "obstore" else found(name, *a)
    )
    assert f"{URL}: object stores are read with the package obstore" in refused(tmp_path)


@pytest.mark.parametrize("change", ["other bytes", "deleted", "cut short", "added at the end"])
def test_what_changes_while_it_is_read_is_noticed(tmp_path, door, change):
    chunk, other = (door.store / f"call_genotype/{k}.0.0" for k in (3, 2))
    whole = chunk.read_bytes()
    assert len(other.read_bytes()) > 20
    acts = {
        "other bytes": lambda: chunk.write_bytes(other.read_bytes()),
        "deleted": chunk.unlink,
        "cut short": lambda: chunk.write_bytes(whole[:-3]),
        "added at the end": lambda: (door.store / "call_genotype/9.0.0").write_bytes(whole),
    }
    door.before["call_genotype/3.0.0"] = acts[change]
    assert "was changed while it was read; run again" in refused(tmp_path / "out")
    assert not (tmp_path / "out/raw.bed").exists()


def test_an_object_that_was_cut_before_is_damaged(tmp_path, door):
    """Blosc would decode it to wrong genotypes."""
    chunk = door.store / "call_genotype/3.0.0"
    chunk.write_bytes(chunk.read_bytes()[:-2])
    assert "call_genotype/3.0.0 is cut short or damaged" in refused(tmp_path / "out")


def test_the_key_changes_with_any_object(door):
    before = file_key([URL])
    list_objects.cache_clear()
    assert file_key([URL]) == before
    chunk = door.store / "call_genotype/3.0.0"
    chunk.write_bytes(bytes([chunk.read_bytes()[0] ^ 1]) + chunk.read_bytes()[1:])
    list_objects.cache_clear()
    assert file_key([URL]) != before


def test_init_writes_the_address(tmp_path, door, monkeypatch):
    monkeypatch.chdir(tmp_path)
    init_study([f"EUR={URL}"])
    text = Path("config/cohorts.tsv").read_text()
    assert f"EUR\t{URL}\tyes" in text
    _, study, _ = validate_study(read_config())
    assert study.counts == {"EUR": N_SAMPLES} and open_store(URL).n_sites == N_SITES
    Path("config/cohorts.tsv").write_text(text.replace("one.vcz", "none.vcz"))
    list_objects.cache_clear()
    with pytest.raises(UserError, match=r"cohorts.tsv, row 2: s3://\S*none.vcz has no objects"):
        validate_study(read_config())
