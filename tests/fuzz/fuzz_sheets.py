"""Both sheets: read like pandas, or refused with one sentence that names the sheet."""

from __future__ import annotations

import io
import math
import random
import re
from pathlib import Path

import pandas as pd
from fuzz.damage import ODD, damaged

from popdesic.cohort.parents import check_parents
from popdesic.cohort.samples import describe_samples, pedigree, populations, samples_in_order, sexes
from popdesic.cohort.sheet_text import unrecognised_columns
from popdesic.core.errors import UserError
from popdesic.core.tables import write_table
from popdesic.study.configuration import fill_config
from popdesic.study.sheets import load_study

CONFIG = fill_config({})
COHORTS, SAMPLES = "config/cohorts.tsv", "config/samples.tsv"
GOOD_COHORTS = ["one", "two", "a_b", "EUR", "x.1", "1000G", "constructor", "c-3", "min"]
GOOD_LABELS = ["P", "Q", "min", "NA", "", "Côte d'Ivoire", "日本", "a b", "x\u00a0y", "__proto__"]
FURTHER = [
    "population",
    "group",
    "sex",
    "phenotype",
    "father",
    "mother",
    "age",
    "site",
    "Sex",
    "pop",
]
PHENOTYPES = [
    ("0", "1", "NA"),
    ("1", "2", "NA"),
    ("1", "2"),
    ("1.0", "2", ""),
    ("3.5", "4", "-7", "NA"),
    ("NA",),
    ("0", "1", "2", "3"),
]


class Sheets:
    """Two sheets; `clean`: whether they were written without errors."""

    name = "sheets"

    def generate(self, rng: random.Random) -> dict:
        cohorts = rng.sample(GOOD_COHORTS, rng.randint(1, 4))
        founders = ["yes", *(rng.choice(["yes", "no"]) for _ in cohorts[1:])]
        sheet = [["cohort", "genotypes", "founder"]]
        sheet += [[c, f"data/{c}.vcf", f] for c, f in zip(cohorts, founders, strict=True)]
        header = ["sample", "cohort", *rng.sample(FURTHER, rng.randint(0, 6))]
        count = rng.randint(2, 12)
        names = rng.sample([f"s{k}" for k in range(30)] + ["NA1", "a b", "é", '"', "x y z"], count)
        codes = rng.choice(PHENOTYPES)
        rows = []
        for k, name in enumerate(names):
            values = {
                "sample": name,
                "cohort": cohorts[0] if k < 2 else rng.choice(cohorts),
                "sex": "NA",
                "phenotype": codes[k % len(codes)],
                # Parents come from earlier rows, so that nobody is their own ancestor.
                "father": names[rng.randrange(k)] if k and rng.random() < 0.5 else "0",
                "mother": names[rng.randrange(k)] if k and rng.random() < 0.5 else "NA",
            }
            rows.append([values.get(c, rng.choice(GOOD_LABELS)) for c in header])
        clean = rng.random() < 0.3
        known = {row[header.index("phenotype")] for row in rows} if "phenotype" in header else set()
        known -= {"NA", ""}
        if len({float(value) for value in known}) == 1 or {float(v) for v in known} == {0, 1, 2}:
            clean = False
        if not clean and rng.random() < 0.7:
            for table in rng.choices([sheet, [header, *rows]], k=rng.randint(1, 3)):
                row = table[rng.randrange(len(table))]
                row[rng.randrange(len(row))] = rng.choice([*ODD, *cohorts, *names])
        end = rng.choice(["\n", "\r\n", "\r"])
        texts = [
            end.join("\t".join(row) for row in table) + end * rng.randint(0, 2)
            for table in (sheet, [header, *rows])
        ]
        raw = [text.encode() for text in texts]
        if not clean and rng.random() < 0.6:
            which = rng.randrange(2)
            raw[which] = damaged(rng, raw[which])
        return {"cohorts": raw[0], "samples": raw[1], "clean": clean}

    def check(self, case: dict, folder: Path) -> str:
        (folder / "config").mkdir(exist_ok=True)
        for name in ("cohorts", "samples"):
            (folder / f"config/{name}.tsv").write_bytes(case[name])
        try:
            study = load_study(CONFIG, folder, check_files=False)
            check_parents(study.samples.assign(row=0), SAMPLES)
        except UserError as error:
            assert COHORTS in str(error) or SAMPLES in str(error), error
            assert not case["clean"], f"refused without a fault: {error}"
            raise
        cohorts, samples = oracle(case["cohorts"]), oracle(case["samples"])
        assert set(study.order) == set(cohorts.cohort) and cohorts.cohort.is_unique
        assert study.cohorts.genotypes.to_dict() == dict(
            zip(cohorts.cohort, cohorts.genotypes, strict=True)
        )
        yes = cohorts.founder.str.lower().isin(["yes", "true", "1"])
        founder = dict(zip(cohorts.cohort, yes, strict=True))
        assert study.order == sorted(founder, key=lambda c: (not founder[c], c))
        assert samples["sample"].is_unique
        if "phenotype" in samples:
            samples["phenotype"] = recoded(samples.phenotype.tolist())
        if "sex" in samples:
            codes = {"1": "M", "2": "F", "0": "NA", "": "NA"}
            samples["sex"] = [codes.get(s, s) for s in samples.sex]
        rank = {c: k for k, c in enumerate(study.order)}
        order = sorted(
            range(len(samples)), key=lambda k: (rank[samples.cohort[k]], samples["sample"][k])
        )
        expected = samples.iloc[order].reset_index(drop=True)
        assert study.samples.to_dict("list") == expected.to_dict("list")
        if len(case["samples"]) % 8 == 0:  # takes longer than everything else
            self._read_again(study, folder / SAMPLES, folder / "order.tsv")
        return "equal"

    def _read_again(self, study, path: Path, order: Path) -> None:
        """Check that everything that reads the sheets in jobs gets the same values."""
        table = study.samples
        assert samples_in_order(path, study.order).to_dict("list") == table.to_dict("list")
        write_table(order, table[["sample", "cohort"]])
        assert describe_samples(order, path).to_dict("list") == table.to_dict("list")
        labels = table.population if "population" in table else ["NA"] * len(table)
        assert populations(path) == {
            name: label or "NA" for name, label in zip(table["sample"], labels, strict=True)
        }
        known = set(sexes(path).values())
        assert known <= {"M", "F"}
        assert set(pedigree(path)) <= set(table["sample"])
        for remark in unrecognised_columns(list(table.columns), SAMPLES):
            UserError(remark)


def oracle(raw: bytes) -> pd.DataFrame:
    """The sheet as pandas reads it, without blank lines and surrounding spaces."""
    lines = re.split("\r\n|\r|\n", raw.decode("utf-8-sig"))
    table = pd.read_csv(
        io.StringIO("\n".join(line for line in lines if line.strip())),
        sep="\t",
        dtype=str,
        keep_default_na=False,
        na_filter=False,
        quoting=3,
        index_col=False,
    )
    rows = [[value.strip(" ") for value in row] for row in table.to_numpy().tolist()]
    return pd.DataFrame(rows, columns=[name.strip(" ") for name in table.columns])


def recoded(values: list[str]) -> list[str]:
    """Phenotypes by their definition."""
    numbers = {v: float(v) for v in values if v not in ("NA", "")}
    kinds = set(numbers.values())
    assert all(map(math.isfinite, kinds)) and -9 not in kinds
    assert len(kinds) != 1
    assert not ({0, 2} <= kinds <= {0, 1, 2})
    if kinds == {1, 2}:
        return [str(int(numbers[v]) - 1) if v in numbers else v for v in values]
    return values


TARGETS = [Sheets()]
