"""A standing database of profiles, beside counts by NumPy and the search of a study."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from popdesic.__main__ import main
from popdesic.core.errors import UserError
from popdesic.core.tables import read_table
from popdesic.engine.backend_cpu import CpuBackend
from popdesic.relatives import profiles, queries
from popdesic.relatives.profiles import add_profiles, search_database
from popdesic.relatives.resolution import resolve

N_SITES = 150
#: REF and ALT of site k: never a pair that looks alike on both strands.
PAIRS = [("A", "C"), ("G", "T"), ("A", "G")]
CALLS = np.array(["0/0", "0/1", "1/1", "./."])


def write_vcf(path: Path, genotypes: np.ndarray, names: list[str], swapped=(), sites=None) -> Path:
    """A VCF of genotypes (n_samples, N_SITES) at these sites, `swapped` with ALT as REF."""
    lines = ["##fileformat=VCFv4.2", "##contig=<ID=1,length=1000000>"]
    lines += ['##FORMAT=<ID=GT,Number=1,Type=String,Description="Genotype">']
    head = ["#CHROM", "POS", "ID", "REF", "ALT", "QUAL", "FILTER", "INFO", "FORMAT"]
    lines.append("\t".join([*head, *names]))
    for k in range(N_SITES) if sites is None else sites:
        pair, column = PAIRS[k % 3], genotypes[:, k]
        if k in swapped:
            pair, column = pair[::-1], np.where(column >= 0, 2 - column, -1)
        fields = ["1", str(100 * (k + 1)), ".", *pair, ".", "PASS", ".", "GT"]
        lines.append("\t".join([*fields, *CALLS[column]]))
    path.write_text("\n".join(lines) + "\n")
    return path


def draw(rng, n: int, missing: float = 0.1) -> np.ndarray:
    genotypes = rng.binomial(2, 0.3, (n, N_SITES)).astype(np.int8)
    genotypes[rng.random(genotypes.shape) < missing] = -1
    return genotypes


@pytest.fixture
def files(tmp_path):
    """Two cohorts, one without missing calls, and queries: some are profiles with an error."""
    rng = np.random.default_rng(5)
    a, b = draw(rng, 40), draw(rng, 30, 0.0)
    a[7] = a[3]  # a tie
    query = np.concatenate([a[[3]], b[[9]], draw(rng, 2)])
    query[1, 0] = (query[1, 0] + 1) % 3
    names = {x: [f"{x}{k}" for k in range(n)] for x, n in (("a", 40), ("b", 30), ("q", 4))}
    return {
        **{
            x: write_vcf(tmp_path / f"{x}.vcf", genotypes, names[x])
            for x, genotypes in (("a", a), ("b", b), ("q", query))
        },
        "genotypes": (a, b, query),
        "names": names,
    }


def best_by_numpy(files, top: int) -> list[list]:
    """Rows of the table, by comparing every pair site by site."""
    a, b, query = files["genotypes"]
    everyone = [(x, k, g) for x, part in (("a", a), ("b", b)) for k, g in enumerate(part)]
    rows = []
    for q, own in enumerate(query):
        ranked = []
        for number, (cohort, k, other) in enumerate(everyone):
            both = (own >= 0) & (other >= 0)
            called, differ = int(both.sum()), int((own != other)[both].sum())
            ranked.append(
                (differ * 2**20 // called, number, f"{cohort}{k}", cohort, called, differ)
            )
        for rank, (_, _, *row) in enumerate(sorted(ranked)[:top]):
            rows.append([f"q{q}", rank + 1, *row])
    return rows


def rows_of(table: pd.DataFrame) -> list[list]:
    return table[profiles.COLUMNS[:-1]].to_numpy(object).tolist()


def search(db: Path, query: Path, out: Path, threads: int = 1, **options) -> pd.DataFrame:
    return search_database(db, query, out, CpuBackend(threads), **{"top": 4} | options)


def content(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != ".lock"
    }


def test_search_equals_counts_of_all_pairs(files, tmp_path):
    counts = add_profiles(tmp_path / "db", [("a", files["a"]), ("b", files["b"])])
    assert counts["a"]["samples"] == 40 and counts["b"]["panel_sites_found"] == N_SITES
    table = search(tmp_path / "db", files["q"], tmp_path / "m.tsv")
    assert rows_of(table) == best_by_numpy(files, 4)
    assert table.match[:2].tolist() == ["a3", "a7"]
    assert table[(table["query"] == "q1") & (table["rank"] == 1)].differing.tolist() == [1]
    np.testing.assert_allclose(table.share, table.differing / table.compared)
    assert read_table(tmp_path / "m.tsv").match.tolist() == table.match.tolist()


def test_the_order_of_adding_changes_no_byte(files, tmp_path):
    add_profiles(tmp_path / "ab", [("a", files["a"]), ("b", files["b"])])
    for name in ("b", "a"):
        add_profiles(tmp_path / "ba", [(name, files[name])], threads=2)
    assert content(tmp_path / "ab") == content(tmp_path / "ba")
    for db, threads in (("ab", 1), ("ba", 3)):
        search(tmp_path / db, files["q"], tmp_path / f"{db}.tsv", threads)
    assert (tmp_path / "ab.tsv").read_bytes() == (tmp_path / "ba.tsv").read_bytes()


def test_the_files_are_not_needed_again(files, tmp_path):
    add_profiles(tmp_path / "db", [("a", files["a"]), ("b", files["b"])])
    files["a"].unlink()
    files["b"].unlink()
    (tmp_path / "db").rename(tmp_path / "moved")
    table = search(tmp_path / "moved", files["q"], tmp_path / "m.tsv")
    assert rows_of(table) == best_by_numpy(files, 4)


def test_swapped_alleles_change_no_answer(files, tmp_path):
    _, b, query = files["genotypes"]
    names = files["names"]
    turned = write_vcf(tmp_path / "turned.vcf", b, names["b"], swapped=range(0, 150, 7))
    asked = write_vcf(tmp_path / "asked.vcf", query, names["q"], swapped=(3, 4))
    add_profiles(tmp_path / "db", [("a", files["a"]), ("b", turned)])
    table = search(tmp_path / "db", asked, tmp_path / "m.tsv")
    assert rows_of(table) == best_by_numpy(files, 4)


def test_a_site_with_its_alleles_in_both_orders_counts_once(files, tmp_path):
    *lines, last = files["a"].read_text().splitlines()
    fields = last.split("\t")
    fields[3:5] = fields[4], fields[3]
    files["a"].write_text("\n".join([*lines, last, "\t".join(fields), ""]))
    add_profiles(tmp_path / "db", [("a", files["a"])])
    sites = pd.read_csv(tmp_path / "db" / "sites.tsv", sep="\t", comment="#")
    assert len(sites) == N_SITES and not sites.duplicated(["chrom", "pos"]).any()


def test_search_equals_the_queries_of_a_study(files, tmp_path):
    """The same planes as cohorts of a study on a panel of the same sites."""
    db = tmp_path / "db"
    add_profiles(db, [("a", files["a"]), ("b", files["b"])])
    head = (db / "sites.tsv").read_text().splitlines()[0]
    table = pd.read_csv(db / "sites.tsv", sep="\t", skiprows=1).assign(af=0.3, n_called=70)
    panel = tmp_path / "panel.tsv"
    panel.write_text(f"{head}\n{table.to_csv(sep=chr(9), index=False)}")
    placed = tmp_path / "placed"
    queries.place_profiles(files["q"], panel, placed, haploid="error")
    told = resolve(1e-6, 0.5, 1e-4, common=100, absent=0.3, panel="x", sites=N_SITES, founders=9,
                   max_mismatch=0.02)  # fmt: skip
    slow = queries.search_queries(
        placed,
        [db / "cohorts/a", db / "cohorts/b"],
        panel,
        tmp_path / "slow.tsv",
        CpuBackend(1),
        top=4,
        min_called=20,
        resolution=told,
        error_rate=0.005,
    )
    found = search(db, files["q"], tmp_path / "m.tsv", min_called=20)
    columns = ["query", "rank", "match", "match_cohort", "called", "mismatches"]
    assert rows_of(found) == slow[columns].to_numpy(object).tolist()


@pytest.mark.parametrize("step", ["encode_cohort", "checksum_of", "write_json"])
def test_an_interrupted_add_leaves_the_old_database(files, tmp_path, monkeypatch, step):
    db = tmp_path / "db"
    add_profiles(db, [("a", files["a"])])
    search(db, files["q"], tmp_path / "before.tsv")
    before = content(db)
    with monkeypatch.context() as patch:

        def stop(*_, **__):
            raise KeyboardInterrupt

        patch.setattr(profiles, step, stop)
        with pytest.raises(KeyboardInterrupt):
            add_profiles(db, [("b", files["b"])])
    left = content(db)
    assert {name: left[name] for name in before} == before
    (db / ".adding.killed").mkdir()  # what a killed process cannot remove
    search(db, files["q"], tmp_path / "after.tsv")
    assert (tmp_path / "after.tsv").read_bytes() == (tmp_path / "before.tsv").read_bytes()
    add_profiles(db, [("b", files["b"])])
    assert rows_of(search(db, files["q"], tmp_path / "m.tsv")) == best_by_numpy(files, 4)
    assert not (db / ".adding.killed").exists()


def test_the_first_add_may_be_interrupted(files, tmp_path, monkeypatch):
    """Its sites are then not those of the next one."""
    few = write_vcf(
        tmp_path / "few.vcf", files["genotypes"][0], files["names"]["a"], sites=range(9)
    )
    with monkeypatch.context() as patch:

        def stop(*_, **__):
            raise KeyboardInterrupt

        patch.setattr(profiles, "write_json", stop)
        with pytest.raises(KeyboardInterrupt):
            add_profiles(tmp_path / "db", [("few", few)])
    add_profiles(tmp_path / "db", [("a", files["a"]), ("b", files["b"])])
    assert rows_of(search(tmp_path / "db", files["q"], tmp_path / "m.tsv")) == best_by_numpy(
        files, 4
    )


def test_what_cannot_be_added_is_said_and_changes_nothing(files, tmp_path):
    db, (_, b, _), names = tmp_path / "db", files["genotypes"], files["names"]
    add_profiles(db, [("a", files["a"])])
    before = content(db)
    fewer = write_vcf(tmp_path / "fewer.vcf", b, names["b"], sites=range(0, N_SITES - 2))
    text = files["b"].read_text().replace("\t200\t.\tG\tT\t", "\t200\t.\tG\tA\t")
    (tmp_path / "other.vcf").write_text(text)
    same = write_vcf(tmp_path / "same.vcf", b[:1], ["a11"])
    empty = write_vcf(tmp_path / "empty.vcf", np.where(b > 9, b, -1), names["b"])
    for name, file, words in (
        ("a", files["b"], "has a cohort 'a' already"),
        ("b", fewer, "lacks 2 of the 150 sites of the database, the first being 1:14900"),
        ("b", tmp_path / "other.vcf", r"1:200 G/T \(with other alleles there\)"),
        ("c", same, r"profile 'a11' is in .*db already \(cohort 'a'\)"),
        ("b", empty, "sample 'b0' .*no called genotype"),
    ):
        with pytest.raises(UserError, match=words):
            add_profiles(db, [("b2", files["b"]), (name, file)])
        assert content(db) == before
    (tmp_path / "strange").mkdir()
    (tmp_path / "strange/mine.txt").touch()
    with pytest.raises(UserError, match=r"holds other files \(such as mine.txt\)"):
        add_profiles(tmp_path / "strange", [("a", files["a"])])


def test_what_cannot_be_searched_is_said(files, tmp_path):
    db = tmp_path / "db"
    with pytest.raises(UserError, match="holds no profiles; add some first"):
        search(db, files["q"], tmp_path / "m.tsv")
    add_profiles(db, [("a", files["a"])])
    with pytest.raises(
        UserError, match=r"4 of 4 profiles have fewer than 150 called .* 'q0', 'q1'"
    ):
        search(db, files["q"], tmp_path / "m.tsv", min_called=150)
    uncalled = write_vcf(tmp_path / "u.vcf", np.full((1, N_SITES), -1), ["u0"])
    with pytest.raises(UserError, match=r"'u0' of cohort 'u\.vcf' .*; remove it from the file"):
        search(db, uncalled, tmp_path / "m.tsv")
    with pytest.raises(UserError, match=r"nowhere\.vcf does not exist; correct its path\.$"):
        search(db, tmp_path / "nowhere.vcf", tmp_path / "m.tsv")
    kept = content(db)
    for lost in (files["q"], db / "profiles.json", db / "sites.tsv"):
        with pytest.raises(UserError, match="which would be lost"):
            search(db, files["q"], lost)
    assert content(db) == kept
    for name in ("sites.tsv", "cohorts/a/planes.npy", "cohorts/a/planes.json"):
        shutil.copytree(db, tmp_path / "copy")
        damaged = bytearray((tmp_path / "copy" / name).read_bytes())
        damaged[-1] ^= 1
        (tmp_path / "copy" / name).write_bytes(damaged)
        with pytest.raises(UserError, match=f"{name} is not as it was written"):
            search(tmp_path / "copy", files["q"], tmp_path / "m.tsv")
        shutil.rmtree(tmp_path / "copy")
    (db / "profiles.json").write_text("{}")
    with pytest.raises(UserError, match="damaged or of another version"):
        search(db, files["q"], tmp_path / "m.tsv")


def test_queries_with_too_few_calls_are_named_and_the_others_searched(files, tmp_path, caplog):
    db, names = tmp_path / "db", files["names"]["q"]
    add_profiles(db, [("a", files["a"]), ("b", files["b"])])
    whole = search(db, files["q"], tmp_path / "whole.tsv", min_called=75)
    genotypes = files["genotypes"][2].copy()
    genotypes[0], genotypes[2, 60:] = -1, -1
    asked = write_vcf(tmp_path / "asked.vcf", genotypes, names)
    found = search(db, asked, tmp_path / "m.tsv", min_called=75)
    assert rows_of(found) == [row for row in rows_of(whole) if row[0] in ("q1", "q3")]
    assert "1 of 4 samples" in caplog.text and "are left out: q0" in caplog.text
    assert "1 of 3 profiles have fewer than 75 called sites" in caplog.text
    assert "'q2'; lower --min-called" in caplog.text and "They are left out." in caplog.text


def test_a_cohort_that_cannot_have_its_name_is_refused_for_its_name(files, tmp_path, capsys):
    assert main(["profiles", "add", str(tmp_path / "db"), f"my lab={files['a']}"]) == 1
    said = capsys.readouterr().err
    assert "'my lab' cannot be the name of a cohort" in said and "use letters, digits" in said
    assert not (tmp_path / "db").exists()


def test_the_two_commands(files, tmp_path, capsys):
    db, out = str(tmp_path / "db"), str(tmp_path / "m.tsv")
    assert main(["profiles", "add", db, str(files["a"]), f"lab={files['b']}"]) == 0
    assert capsys.readouterr().out == "a\t40 profiles\t150 sites\nlab\t30 profiles\t150 sites\n"
    words = ["--top", "2", "--min-called", "40", "--device", "cpu", "--out", out]
    assert main(["profiles", "search", db, str(files["q"]), *words]) == 0
    table = read_table(Path(out))
    assert table.match_cohort.tolist()[:3] == ["a", "a", "lab"]
    assert len(table) == 8
    assert main(["profiles", "search", db, str(files["q"]), str(files["a"])]) == 1
    assert "one file of queries" in capsys.readouterr().err
