"""One-hot planes of the scanned sites, split by phenotype: what the epistasis scans read.

Within a site genotypes are ranked by frequency and only the two rarest are stored (and missing
ones); sites are ordered by how many samples their stored states hold, fewest first, which is what
a scan compacts (DESIGN section 8). Labels and panel order are kept beside the planes.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from .errors import UserError
from .genotypes import unpack_bed
from .qc import chunks
from .results import read_table, write_npy, write_table
from .store import open_bed, read_bim, read_fam

#: The backends' accumulators and the score tables hold this many samples.
MAX_SAMPLES = 1 << 24
UNKNOWN = ("NA", "")


def phenotype_classes(samples: pd.DataFrame, binarize: str, source: str) -> np.ndarray:
    """Class of each row of the sample sheet: int8, 0 control, 1 case, -1 unknown.

    Raises
    ------
    UserError
        No phenotype column, only one class, or a quantitative trait without ``median``.
    """
    if "phenotype" not in samples:
        raise UserError(
            f"{source} has no column 'phenotype', which epistasis.order needs; add it (1 case, 0 "
            "control, NA) or set epistasis.order to []."
        )
    known = ~samples.phenotype.isin(UNKNOWN).to_numpy()
    values = pd.to_numeric(samples.phenotype.where(known), errors="coerce").to_numpy(float)
    bad = np.flatnonzero(known & ~np.isfinite(values))
    if len(bad):
        row = samples.iloc[bad[0]]
        raise UserError(
            f"{source}: phenotype of sample '{row['sample']}' is '{row.phenotype}'; give 1, 0, a "
            "number or NA."
        )
    if not np.isin(values[known], (0, 1)).all():
        if binarize != "median":
            raise UserError(
                f"{source}: the phenotype has values other than 0 and 1, and epistasis scans need "
                "cases and controls; set epistasis.binarize to 'median' or give a binary column."
            )
        values = np.where(known, values > np.median(values[known]), values)
    classes = np.where(known, values, -1).astype(np.int8)
    for value, name in ((0, "control"), (1, "case")):
        if not (classes == value).any():
            raise UserError(
                f"{source}, column phenotype: no sample is a {name}, so there is nothing to scan "
                "for; give both classes or set epistasis.order to []."
            )
    return classes


def read_restriction(path: Path, bim: pd.DataFrame) -> np.ndarray:
    """Sites that a file names, bool (n_sites,).

    A BED file (chrom, start, end, 0-based half-open; further columns are ignored) or one site a
    line, as ID or as chrom:pos:ref:alt.
    """
    lines = [line.split() for line in path.read_text("utf-8-sig").splitlines() if line.strip()]
    lines = [line for line in lines if not line[0].startswith(("#", "track", "browser"))]
    keep = np.zeros(len(bim), bool)
    if lines and len(lines[0]) == 1:
        names = {line[0] for line in lines}
        keys = bim.chrom + ":" + bim.pos.astype(str) + ":" + bim.ref + ":" + bim.alt
        keep = (bim.id.isin(names) | keys.isin(names)).to_numpy()
    else:
        rows = {chrom: group.to_numpy() for chrom, group in bim.groupby("chrom").groups.items()}
        pos = bim.pos.to_numpy()
        for number, line in enumerate(lines, 1):
            if len(line) < 3 or not (line[1].isdigit() and line[2].isdigit()):
                raise UserError(
                    f"{path}, entry {number}: '{' '.join(line)}' is not chrom, start, end of a BED "
                    "file; correct it, or list one site a line."
                )
            chosen = rows.get(line[0])
            if chosen is not None:
                inside = (pos[chosen] > int(line[1])) & (pos[chosen] <= int(line[2]))
                keep[chosen[inside]] = True
    if not keep.any():
        raise UserError(
            f"{path}: none of its {len(lines)} entries names a site of the panel; check the names "
            "of chromosomes and sites (epistasis.restrict)."
        )
    return keep


def build_onehot(
    prefixes: list[Path],
    samples: pd.DataFrame,
    classes: np.ndarray,
    *,
    strata: str,
    restrict: Path | None,
    least: int,
    onehot_out: Path,
    sites_out: Path,
    samples_out: Path,
) -> dict[str, int]:
    """Write the planes of all samples with a phenotype.

    Parameters
    ----------
    prefixes : list of Path
        Stems of the cohorts' genotypes on the panel (.bed .bim .fam), called genotypes only.
    samples, classes
        Rows of the sample sheet and their `phenotype_classes`.
    strata : str
        Column of the sheet within which phenotypes may be permuted, or ``none``.
    restrict : Path, optional
        See `read_restriction`.
    least : int
        Fewest sites that the scans of this study need.
    onehot_out : Path
        uint64 (n_sites, n_states, words of the controls + words of the cases), as
        `backend.OneHot`: rarest genotype, second rarest and, if any is missing, missing.
    sites_out : Path
        chrom, pos, id, ref, alt, `rank` (row in the panel), `state0`, `state1`, `other` (ALT
        counts of the stored genotypes and of the third one), `n_missing`.
    samples_out : Path
        sample, cohort, stratum, class; controls first, as in the planes.

    Returns
    -------
    dict
        Samples, sites, and the sites dropped by reason.
    """
    sheet = samples.assign(case=classes).set_index("sample")
    names = [read_fam(prefix)["sample"].tolist() for prefix in prefixes]
    kept = sheet.loc[[name for group in names for name in group]]
    if strata != "none" and strata not in kept:
        raise UserError(
            f"config/config.yaml: epistasis.strata is '{strata}', which is no column of the sample "
            "sheet; name one, or 'none'."
        )
    kept = kept.assign(stratum="all" if strata == "none" else kept[strata].replace("", "NA"))
    case = kept.case.to_numpy()
    if len(case) > MAX_SAMPLES:
        raise UserError(
            f"epistasis: {len(case)} samples are more than the {MAX_SAMPLES} that a scan can "
            "count; leave some without a phenotype."
        )
    if not ((case == 0).any() and (case == 1).any()):
        raise UserError(
            "epistasis: after quality control only one phenotype class has samples; lower "
            "qc.min_sample_call_rate or set epistasis.order to []."
        )
    # Controls first, both in sample order.
    order = np.concatenate([np.flatnonzero(case == 0), np.flatnonzero(case == 1)])
    n_controls = int((case == 0).sum())
    bim = read_bim(prefixes[0]).reset_index(drop=True)
    chosen = np.ones(len(bim), bool) if restrict is None else read_restriction(restrict, bim)
    rows = np.flatnonzero(chosen)
    beds = [(open_bed(prefix), len(group)) for prefix, group in zip(prefixes, names, strict=True)]
    states, tables, counts = [], [], {"no_called_genotype": 0, "monomorphic": 0}
    for first, last in chunks(len(rows), 4096):
        part = rows[first:last]
        genotypes = np.concatenate([unpack_bed(bed[part], n) for bed, n in beds], axis=1)[:, order]
        found, table = _rank_genotypes(genotypes)
        called = table[:, :3].sum(axis=1)
        empty, flat = called == 0, (called > 0) & (table[:, :3].max(axis=1) == called)
        counts["no_called_genotype"] += int(empty.sum())
        counts["monomorphic"] += int(flat.sum())
        good = ~(empty | flat)
        states.append(found[good])
        tables.append(np.column_stack([part[good], table[good]]))
    states, table = np.concatenate(states), np.concatenate(tables)
    if len(states) < least:
        raise UserError(
            f"epistasis: {len(states)} usable sites are fewer than the {least} that a scan of "
            f"order {least} combines; widen epistasis.restrict or the panel's filters."
        )
    stored = (states != 3).sum(axis=1)
    sites = np.lexsort((table[:, 0], stored))
    states, table = states[sites], table[sites]
    write_npy(onehot_out, pack_states(states, n_controls))
    panel = bim.iloc[table[:, 0]]
    ranked = np.argsort(table[:, 1:4], axis=1, kind="stable")
    write_table(
        sites_out,
        pd.DataFrame(
            {
                **{column: panel[column].to_numpy() for column in ("chrom", "pos", "id")},
                **{column: panel[column].to_numpy() for column in ("ref", "alt")},
                "rank": table[:, 0],
                "state0": ranked[:, 0],
                "state1": ranked[:, 1],
                "other": ranked[:, 2],
                "n_missing": table[:, 4],
            }
        ),
    )
    listed = kept.iloc[order]
    write_table(
        samples_out,
        pd.DataFrame(
            {
                "sample": listed.index,
                "cohort": listed.cohort.to_numpy(),
                "stratum": listed.stratum.to_numpy(),
                "class": np.where(listed.case == 1, "case", "control"),
            }
        ),
    )
    return {
        "controls": n_controls,
        "cases": len(order) - n_controls,
        "sites": len(states),
        "outside_restriction": int((~chosen).sum()),
        **counts,
    }


def _rank_genotypes(genotypes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """States int8 (n_sites, n_samples): 0 rarest, 1 second rarest, 2 missing, 3 the other;
    and the counts of genotypes 0, 1, 2 and missing, int64 (n_sites, 4)."""
    table = np.stack([(genotypes == g).sum(axis=1) for g in (0, 1, 2, -1)], axis=1)
    ranked = np.argsort(table[:, :3], axis=1, kind="stable")
    state_of = np.full((len(genotypes), 4), 2, np.int8)  # column -1 is missing
    np.put_along_axis(state_of, ranked, np.array([[0, 1, 3]], np.int8), axis=1)
    return np.take_along_axis(state_of, genotypes.astype(np.int64) % 4, axis=1), table


def pack_states(states: np.ndarray, n_controls: int) -> np.ndarray:
    """States as the array of onehot.npy; controls are the first columns."""
    kinds = [0, 1, 2] if (states == 2).any() else [0, 1]
    parts = []
    for part in (states[:, :n_controls], states[:, n_controls:]):
        n_bytes = -(-part.shape[1] // 64) * 8
        words = np.zeros((len(states), len(kinds), n_bytes), np.uint8)
        for k, kind in enumerate(kinds):
            bits = np.packbits(part == kind, axis=1, bitorder="little")
            words[:, k, : bits.shape[1]] = bits
        parts.append(words.view(np.uint64))
    return np.concatenate(parts, axis=2)


def unpack_states(words: np.ndarray, n_controls: int, n_cases: int) -> np.ndarray:
    """States int8 (n_sites, n_samples), controls first, of the array of onehot.npy."""
    split = -(-n_controls // 64)
    out = np.full((len(words), n_controls + n_cases), 3, np.int8)
    for part, columns, n in (
        (words[:, :, :split], slice(0, n_controls), n_controls),
        (words[:, :, split:], slice(n_controls, None), n_cases),
    ):
        for k in range(words.shape[1]):
            plane = np.ascontiguousarray(part[:, k]).view(np.uint8)
            bits = np.unpackbits(plane, axis=1, count=n, bitorder="little")
            out[:, columns][bits == 1] = k
    return out


def read_reordered(folder: Path) -> tuple[np.ndarray, pd.DataFrame, pd.DataFrame]:
    """onehot.npy (mapped), sites.tsv and samples.tsv of results/reorder."""
    sites = read_table(folder / "sites.tsv")
    numbers = ["pos", "rank", "state0", "state1", "other", "n_missing"]
    return (
        np.load(folder / "onehot.npy", mmap_mode="r"),
        sites.astype(dict.fromkeys(numbers, np.int64)),
        read_table(folder / "samples.tsv"),
    )
