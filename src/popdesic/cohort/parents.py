"""Check the fathers and mothers in a sample sheet."""

from __future__ import annotations

import difflib

import pandas as pd

from ..core.errors import UserError, shorten

#: Values for an unknown parent.
NOBODY = ("", "0", "NA")
#: Names among which one like an absent parent is looked for.
MOST_KNOWN = 2000


def check_parents(sheet: pd.DataFrame, shown: str) -> None:
    """Check that each parent in the sheet is another sample, with the right sex.

    Parents who are not in the sheet are unknown (`remark_on_absent`)."""
    if not {"father", "mother"} & set(sheet.columns):
        return
    names, rows = sheet["sample"].tolist(), sheet["row"].tolist()
    sex = dict(zip(names, sheet.sex.tolist(), strict=True)) if "sex" in sheet else {}
    known = set(names)
    for column, other in (("father", "F"), ("mother", "M")):
        if column not in sheet:
            continue
        for row, child, name in zip(rows, names, sheet[column].tolist(), strict=True):
            if name in NOBODY:
                continue
            start = f"{shown}, row {row}: {column} of '{child}' is '{name}'"
            if name not in known:
                continue  # `remark_on_absent`
            if name == child:
                raise UserError(f"{start}, the sample itself; correct it or write NA.")
            if sex.get(name) == other:
                raise UserError(
                    f"{start}, whose sex is {other}; swap father and mother or correct the sex."
                )
    _check_descent(sheet, shown)


def remark_on_absent(sheet: pd.DataFrame, shown: str) -> list[str]:
    """A sentence on parents who are not samples of the sheet."""
    known = set(sheet["sample"].tolist())
    absent = {
        name: (column, child)
        for column in ("father", "mother")
        if column in sheet
        for child, name in zip(sheet["sample"].tolist(), sheet[column].tolist(), strict=True)
        if name not in NOBODY and name not in known
    }
    if not absent:
        return []
    name, (column, child) = next(iter(absent.items()))
    near = difflib.get_close_matches(name, list(known)[:MOST_KNOWN], n=1, cutoff=0.7)
    who = "1 parent is" if len(absent) == 1 else f"{len(absent)} parents are"
    return [
        f"{shown}: {who} not in the sheet and taken as unknown, so their children are not compared "
        f"with them (the first is '{shorten(name)}', {column} of '{shorten(child)}'"
        f"{f'; did you mean {near[0]!r}?' if near else ''})."
    ]


def _check_descent(sheet: pd.DataFrame, shown: str) -> None:
    """Refuse a cycle in the pedigree: a topological sort visits parents before children."""
    names = sheet["sample"].tolist()
    place = {name: k for k, name in enumerate(names)}
    children: dict[int, list[int]] = {}
    parents: dict[int, list[int]] = {}
    for column in (c for c in ("father", "mother") if c in sheet):
        for child, name in enumerate(sheet[column].tolist()):
            if name in place:
                parents.setdefault(child, []).append(place[name])
                children.setdefault(place[name], []).append(child)
    waiting = {child: len(some) for child, some in parents.items()}
    done = [parent for parent in children if parent not in parents]
    for parent in done:  # the list grows during the loop
        for child in children.get(parent, []):
            waiting[child] -= 1
            if not waiting[child]:
                done.append(child)
    left = sorted(child for child, count in waiting.items() if count)
    if not left:
        return
    # Each remaining child has a remaining parent, so following parents ends in a cycle.
    at, path = left[0], {}
    while at not in path:
        path[at] = len(path)
        at = next(parent for parent in parents[at] if waiting.get(parent))
    loop = list(path)[path[at] :]
    shown_loop = [names[k] for k in (*loop[:4], loop[0])]
    raise UserError(
        f"{shown}, row {sheet.row.iloc[loop[0]]}: '{names[loop[0]]}' is their own ancestor "
        f"({' < '.join(shown_loop[:-1])}{' < …' if len(loop) > 4 else ''} < {shown_loop[-1]}); "
        "correct father and mother."
    )
