"""Files beside `raw.json` go and come with it, whatever earlier versions recorded."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from popdesic.core.tables import write_npz
from popdesic.study.audit import _made_with
from popdesic.study.snakemake_internals import Job, record_of, write_record
from popdesic.study.stale import delete_results, outdated_results

DECODED = [f"raw.{end}" for end in ("bed", "bim", "fam", "callable.npz", "dropped.npz")]
ABOUT = "results/cohorts/north/raw.json"


@pytest.fixture
def study(tmp_path) -> Path:
    """Decoded files, all of which an earlier version recorded."""
    folder = (tmp_path / ABOUT).parent
    folder.mkdir(parents=True)
    for name in ("raw.json", ".raw.key", *DECODED):
        (folder / name).write_text("")
    for name in ("raw.json", "raw.bed", "raw.bim", "raw.fam"):
        write_record(tmp_path, f"results/cohorts/north/{name}", record_of("ingest_cohort", []))
    return tmp_path


@pytest.mark.parametrize("name", DECODED)
def test_a_damaged_decoded_file_is_made_with_its_list(study, name):
    assert _made_with(study, f"results/cohorts/north/{name}") == [ABOUT]


def test_a_cohort_to_decode_again_leaves_nothing(study):
    """Reference blocks and dropped records too: a batch may hold them of a cohort that left."""
    job = Job("ingest_cohort", {"cohort": "north"}, 1, 1, 1, 0, (ABOUT,), True)
    found = outdated_results(study, [job])
    assert found == sorted([ABOUT, *(f"results/cohorts/north/{name}" for name in DECODED)])
    delete_results(study, found)
    assert not (study / ABOUT).parent.exists()


def test_what_communities_keep_of_founders_goes_with_them(tmp_path):
    """Components of single samples, under no name of a sample."""
    folder = tmp_path / "results/communities"
    folder.mkdir(parents=True)
    write_npz(folder / ".founders.npz", vectors=np.zeros(3))
    (folder / "partition.tsv").write_text("")
    delete_results(tmp_path, ["results/communities/partition.tsv"])
    assert not folder.exists()
