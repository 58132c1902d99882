"""One verdict a pair: what it rests on, when no degree is told, who agrees."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scenes.ibd_people import HUMAN_CM
from scenes.whole_genome import RIGHT, draw_scene, evidence_of

from popdesic.cohort.contigs import Genome
from popdesic.core.files import read_json, write_json
from popdesic.core.tables import read_table, write_npz, write_table
from popdesic.ibd.degrees import DegreeScale
from popdesic.ibd.verdict import (
    CLOSE,
    COLUMNS,
    SHORT,
    UNTOLD,
    WIDE,
    KinEvidence,
    SearchedGenome,
    judge_pairs,
    judge_study,
    panel_genome,
    surely_close,
)
from popdesic.relatives.kinship import SAME
from popdesic.relatives.resolution import resolve

HUMAN = np.array(HUMAN_CM, float)
PANEL, SEGMENTS = DegreeScale(HUMAN, 0.0), DegreeScale(HUMAN, 7.0)
WHOLE = float(HUMAN.sum())
#: Standard error of kinship 0.0077.
RESOLUTION = resolve(6e-5, 0.3, 1e-6, panel="x", sites=100_000, founders=100, max_mismatch=0.02)


def segments(*rows: tuple) -> pd.DataFrame:
    """Two samples, total and IBD2 length as shares of the genome, number of segments."""
    table = pd.DataFrame(rows, columns=["sample1", "sample2", "total_cM", "ibd2_cM", "segments"])
    table[["total_cM", "ibd2_cM"]] *= WHOLE
    return table.assign(cohort1="one", cohort2="one")


def kinships(*rows: tuple, cohort: str = "one") -> pd.DataFrame:
    """Two samples, kinship, and opposite homozygotes as a share of those of strangers."""
    table = pd.DataFrame(rows, columns=["sample_a", "sample_b", "kinship", "k0"])
    table = table.assign(cohort_a=cohort, cohort_b=cohort, called=100_000, sites=50_000)
    same = table.kinship > 0.45
    return table.assign(ibs0=table.k0 * 5_000, relation=np.where(same, SAME, "related"))


def evidence(**tables) -> KinEvidence:
    return KinEvidence(**{"resolution": RESOLUTION, "opposite": 0.05, **tables})


def verdicts(found: KinEvidence, genome: SearchedGenome) -> dict[str, pd.Series]:
    table = judge_pairs(found, genome)
    assert list(table.columns) == COLUMNS
    return {row.sample_a + row.sample_b: row for row in table.itertuples()}


def test_the_verdict_rests_on_segments_then_pc_relate_then_king():
    king = kinships(("a", "b", 0.13, 0.5), ("a", "c", 0.13, 0.5))
    related = kinships(("a", "b", 0.09, 0.7))
    shared = segments(("b", "a", 0.25, 0.0, 30), ("c", "d", 0.25, 0.0, 30))
    found = verdicts(evidence(segments=shared, pc_relate=related, king=king),
                     SearchedGenome(PANEL, SEGMENTS))  # fmt: skip
    assert found["ab"].relation == "third degree" and found["ab"].basis == "segments"
    assert found["ab"].agree == "pc_relate" and found["ab"].differ == "king"
    assert (found["ab"].segments, found["ab"].pc_relate, found["ab"].king) == (0.0625, 0.09, 0.13)
    # Shared segments show nothing between those two, and nothing lists the others.
    assert found["ac"].relation == "unrelated" and found["ac"].differ == "king"
    assert found["cd"].relation == "third degree" and found["cd"].agree == "pc_relate,king"
    found = verdicts(evidence(pc_relate=related, king=king), SearchedGenome(PANEL))
    assert (found["ab"].basis, found["ac"].basis) == ("pc_relate", "king")
    assert found["ab"].relation == "second degree"
    found = verdicts(evidence(king=king), SearchedGenome(PANEL))
    assert found["ab"].relation == "second degree" and found["ab"].agree == "none"


def test_no_degree_on_a_short_genome():
    genome = SearchedGenome(DegreeScale(np.array([60.0]), 0.0), DegreeScale(np.array([60.0]), 7.0))
    king = kinships(("a", "b", 0.25, 0.0), ("a", "c", 0.5, 0.0))
    shared = segments(("a", "b", 60 / WHOLE, 0.0, 1), ("a", "c", 60 / WHOLE, 60 / WHOLE, 1))
    for found in (evidence(king=king), evidence(king=king, segments=shared)):
        told = verdicts(
            found, genome if found.segments is not None else SearchedGenome(genome.panel)
        )
        assert (told["ab"].relation, told["ab"].why) == (UNTOLD, SHORT)
        assert (told["ac"].relation, told["ac"].why) == (SAME, "none")  # by their genotypes
    # Segments of a short genome do not stand in the way of kinship on a long one.
    told = verdicts(evidence(king=king, segments=shared), SearchedGenome(PANEL, genome.segments))
    assert (told["ab"].relation, told["ab"].basis) == ("parent and child", "king")


def test_no_degree_where_the_interval_is_wide():
    few = resolve(1.5e-3, 0.3, 1e-6, panel="x", sites=2_000, founders=100, max_mismatch=0.02)
    king = kinships(("a", "b", 0.13, 0.5), ("a", "c", 0.26, 0.0)).assign(called=2_000)
    found = verdicts(
        evidence(king=king.assign(ibs0=king.k0 * 100), resolution=few), SearchedGenome(PANEL)
    )
    assert (found["ab"].relation, found["ab"].why) == (UNTOLD, WIDE)
    assert found["ac"].relation == "parent and child"
    unknown = evidence(king=king, resolution=None)
    assert {row.relation for row in verdicts(unknown, SearchedGenome(PANEL)).values()} == {UNTOLD}


def test_what_inbred_samples_share_is_more_than_segments_say():
    shared = segments(("a", "b", 0.85, 0.25, 45), ("c", "d", 0.75, 0.25, 45))
    related = kinships(("a", "b", 0.37, 0.1), ("c", "d", 0.25, 0.25))
    found = evidence(segments=shared, pc_relate=related, inbreeding={"a": 0.25, "b": 0.2, "c": 0.0})
    told = verdicts(found, SearchedGenome(PANEL, SEGMENTS))
    assert told["ab"].relation == told["cd"].relation == "full siblings"
    assert (told["ab"].basis, told["cd"].basis) == ("pc_relate", "segments")
    assert told["ab"].kinship == 0.37


def test_cohorts_in_which_an_analysis_fails_are_left_to_the_others():
    king = kinships(("a", "b", 0.25, 0.0), cohort="clones")
    related = kinships(("a", "b", 0.12, 0.5), cohort="clones")
    found = evidence(king=king, pc_relate=related, failing=frozenset({"clones"}))
    told = verdicts(found, SearchedGenome(PANEL))
    assert told["ab"].basis == "pc_relate" and told["ab"].differ == "none"
    found.missed = frozenset({"clones"})
    told = verdicts(found, SearchedGenome(PANEL))
    assert told == {}  # nothing is left that knows the pair


def test_no_pair_and_no_analysis():
    assert judge_pairs(KinEvidence(), SearchedGenome(PANEL)).empty
    assert judge_pairs(evidence(segments=segments()), SearchedGenome(PANEL, SEGMENTS)).empty


def write_roles(folder, roles: dict[str, str]):
    """A file `counts.json` of a panel whose contigs have these roles."""
    about = Genome("unknown", "a test says so", roles).as_dict()
    write_json(folder / "counts.json", {"genome": about})
    return folder / "counts.json"


@pytest.mark.parametrize("megabases", [50, 150])
def test_a_study_is_judged_by_its_files(tmp_path, megabases):
    pos = np.linspace(1, megabases * 1e6, 200).astype(int)
    lines = [f"{c}\t{p}\t{c}.{p}\tA\tG\t0.4\t0\t9" for c in range(1, 9) for p in pos.tolist()]
    head = "# panel x\nchrom\tpos\tid\tref\talt\taf\tmode\tn_called\n"
    (tmp_path / "sites.tsv").write_text(head + "\n".join(lines) + "\n")
    king = kinships(("a", "b", 0.251, 0.0), ("a", "c", 0.5, 0.0))
    write_table(tmp_path / "king.tsv", king)
    write_table(tmp_path / "untold.tsv", pd.DataFrame(columns=["cohort", "fault", "pairs"]))
    write_json(tmp_path / "kinship.json", vars(RESOLUTION))
    shared = segments(("a", "b", 1.0, 0.0, 8), ("x", "y", 0.001, 0.0, 1))
    shared[["total_cM", "ibd2_cM"]] *= 8 * megabases / WHOLE
    write_table(tmp_path / "pairs.tsv", shared)
    write_npz(tmp_path / "genome.npz", cm=np.tile(pos / 1e6, 8), used=np.ones(1_600, bool))
    write_roles(tmp_path, {str(c): "autosome" for c in range(1, 9)})
    names = {"panel": "sites.tsv", "counts": "counts.json"}
    names |= {"king": "king.tsv", "untold": "untold.tsv"}
    names |= {"resolution": "kinship.json", "segments": "pairs.tsv", "genome": "genome.npz"}
    about = judge_study(
        {name: tmp_path / file for name, file in names.items()},
        tmp_path / "relatives.tsv",
        tmp_path / "relatives.json",
        **{
            "genetic_map": "",
            "x_contigs": "auto",
            "min_cm": 7.0,
            "listed": 0.0884,
            "error_rate": 0.005,
        },
    )
    assert about == read_json(tmp_path / "relatives.json")
    assert about["tells"] == (megabases == 150)
    assert about["searched_cm"] == pytest.approx(8 * megabases, abs=0.1)
    table = read_table(tmp_path / "relatives.tsv")
    assert table.relation.tolist() == [SAME, "parent and child" if megabases == 150 else UNTOLD]
    assert about["relations"] == dict.fromkeys(table.relation, 1)


@pytest.mark.parametrize("world", ["admixed", "inbred"])
def test_families_over_a_whole_genome(world):
    scene = draw_scene(world, 501, families=3, per_cm=40, pool_cm=10)
    found, genome, *_ = evidence_of(scene, int(world == "admixed"))
    table = judge_pairs(found, genome)
    place = {name: k for k, name in enumerate(scene.names)}
    pairs = [
        tuple(sorted((place[a], place[b])))
        for a, b in zip(table.sample_a, table.sample_b, strict=True)
    ]
    said = dict(zip(pairs, table.relation, strict=True))
    close = [pair for pair, kind in scene.kind.items() if RIGHT.get(kind) in (SAME, *CLOSE[:3])]
    assert all(said[pair] == RIGHT[scene.kind[pair]] for pair in close)
    near = [pair for pair, kind in scene.kind.items() if RIGHT.get(kind) in CLOSE[3:]]
    assert np.mean([said.get(pair) == RIGHT[scene.kind[pair]] for pair in near]) > 0.85
    strangers = set(pairs) - set(scene.kinship)
    assert not any(said[pair] in (SAME, *CLOSE) for pair in strangers)
    held = [
        row.low <= scene.kinship[pair] <= row.high
        for pair, row in zip(pairs, table.itertuples(), strict=True)
        if pair in scene.kinship
    ]
    assert np.mean(held) > 0.9
    assert set(surely_close(table).relation) <= set(CLOSE)


def test_a_map_without_a_contig_of_the_panel_stops_no_verdict(tmp_path, caplog):
    """Maps often lack X or MT; without segments none was needed before verdicts."""
    panel, genetic_map = tmp_path / "sites.tsv", tmp_path / "genetic.map"
    counts = write_roles(tmp_path, {"1": "autosome", "2": "autosome"})
    panel.write_text("# panel abc, 3 sites\nchrom\tpos\n1\t1000000\n1\t9000000\n2\t5\n")
    genetic_map.write_text("chrom\tpos\tcm\n1\t1\t0\n1\t10000000\t20\n")
    assert panel_genome(panel, counts, str(genetic_map), "auto").searched_cm == pytest.approx(8)
    assert "contig '2'" in caplog.text and "1 Mb counts as 1 cM" in caplog.text
    panel.write_text("# panel abc, 2 sites\nchrom\tpos\n1\t1000000\n1\t9000000\n")
    searched = panel_genome(panel, counts, str(genetic_map), "auto").searched_cm
    assert searched == pytest.approx(16, rel=1e-3)


def test_autosomes_alone_count_towards_the_genome_searched(tmp_path, caplog):
    """X, Y and MT are inherited otherwise; a map that lacks them changes nothing."""
    panel, genetic_map = tmp_path / "sites.tsv", tmp_path / "genetic.map"
    ends = "".join(f"{c}\t1000000\n{c}\t91000000\n" for c in ("1", "X", "Y", "Z7", "MT"))
    panel.write_text(f"# panel abc, 10 sites\nchrom\tpos\n{ends}")
    genetic_map.write_text("chrom\tpos\tcm\n1\t1\t0\n1\t100000000\t200\n")
    roles = {"1": "autosome", "X": "X", "Y": "Y", "Z7": "other", "MT": "MT"}
    counts = write_roles(tmp_path, roles)
    assert panel_genome(panel, counts, "", "auto").searched_cm == pytest.approx(180)
    assert panel_genome(panel, counts, "", ["Z7"]).searched_cm == pytest.approx(90)
    with_map = panel_genome(panel, counts, str(genetic_map), ["Z7"])
    assert with_map.searched_cm == pytest.approx(180, rel=1e-3)
    assert not caplog.text
