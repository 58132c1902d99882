"""Describe a finished run as an RO-Crate (`popdesic crate`).

The file ``ro-crate-metadata.json`` makes the study's folder a crate: version 1.1 of the format,
with the profile Process Run Crate 0.5. It lists inputs with checksums, versions, parameters and
results. It is made from the results' own records, which say when each was made and from what, so
that the same folder gives the same bytes. The format is JSON-LD, and no library is needed.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ..core.errors import UserError
from ..core.files import result_files
from ..core.version import __version__
from .audit import damaged_files
from .configuration import fill_config, read_config
from .records import read_kept_record

CRATE = "ro-crate-metadata.json"
PROFILE = "https://w3id.org/ro/wfrun/process/0.5"
#: Programs whose versions a crate lists.
PROGRAMS = ("snakemake", "numpy", "scipy", "pandas", "numba", "scikit-learn", "matplotlib")
#: What a file is, by the end of its name; anything else is bytes.
MEDIA = {
    ".tsv": "text/tab-separated-values",
    ".json": "application/json",
    ".html": "text/html",
    ".md": "text/markdown",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".gz": "application/gzip",
    ".npz": "application/zip",
    ".yaml": "application/yaml",
}


def write_crate(study: Path, license_url: str = "", author: str = "") -> str:
    """Write the crate's metadata into the study's folder.

    Parameters
    ----------
    license_url : str
        Address of the licence of the data and results; without it the crate says that none is
        stated.
    author : str
        Name of the person who ran the study, if it shall be in the crate.

    Returns
    -------
    str
        What was written, for the user.

    Raises
    ------
    UserError
        There are no results, some are damaged, or an input is not there any more.
    """
    if not (study / "results").is_dir():
        raise UserError(f"{study} has no results yet, so there is nothing to describe.")
    damaged, _ = damaged_files(study)
    if damaged:
        raise UserError(
            f"{len(damaged)} results of {study} are damaged, the first is {damaged[0][0]}; "
            f"`popdesic audit --repair {study}` recomputes them."
        )
    records = dict(_records(study))
    if not records:
        raise UserError(
            f"no result of {study} has a record of its run; run `popdesic run {study}`."
        )
    results = [_entity(study, path) for path in records]
    inputs = [_entity(study, path) for path in _inputs(study, records)]
    config = fill_config(read_config(study))
    parameters = list(_parameters(config))
    programs = _programs()
    made = [record for record in records.values() if record.get("endtime")]
    start = min((r["starttime"] for r in made), default=0.0)
    end = max((r["endtime"] for r in made), default=0.0)
    title = config["report"]["title"]
    run = {
        "@id": "#run",
        "@type": "CreateAction",
        "name": f"Run of Popdesic {__version__}",
        "description": f"{len({r['rule'] for r in records.values()})} rules made these results.",
        "instrument": {"@id": programs[0]["@id"]},
        "object": _references([*inputs, *parameters]),
        "result": _references(results),
        "startTime": _time(start),
        "endTime": _time(end),
    }
    root = {
        "@id": "./",
        "@type": "Dataset",
        "name": title,
        "description": f"Population genomics by Popdesic {__version__}: configuration and results.",
        "datePublished": _time(end),
        "license": {"@id": license_url} if license_url else "No licence is stated.",
        "conformsTo": {"@id": PROFILE},
        "hasPart": _references([e for e in (*inputs, *results) if e["@type"] != "PropertyValue"]),
        "mentions": {"@id": "#run"},
    }
    descriptor = {
        "@id": CRATE,
        "@type": "CreativeWork",
        "about": {"@id": "./"},
        "conformsTo": {"@id": "https://w3id.org/ro/crate/1.1"},
    }
    profile = {
        "@id": PROFILE,
        "@type": "CreativeWork",
        "name": "Process Run Crate",
        "version": "0.5",
    }
    person = {"@id": "#author", "@type": "Person", "name": author}
    if author:
        root["author"] = run["agent"] = {"@id": "#author"}
    licence = [
        {"@id": license_url, "@type": "CreativeWork", "name": license_url, "description": "Licence"}
    ]
    graph = [
        *(descriptor, root, profile, run),
        *(licence if license_url else []),
        *([person] if author else []),
        *(*programs, *parameters, *inputs, *results),
    ]
    context = [
        "https://w3id.org/ro/crate/1.1/context",
        "https://w3id.org/ro/terms/workflow-run/context",
    ]
    _write(study / CRATE, {"@context": context, "@graph": _without_repeats(graph)})
    return (
        f"{study / CRATE}: {len(inputs)} inputs, {len(parameters)} parameters, {len(results)} "
        "results."
    )


def _records(study: Path) -> Iterator[tuple[str, dict]]:
    """Results that a rule made, by their paths, and the records of their jobs."""
    for path in result_files(study / "results"):
        if (text := read_kept_record(path)) is not None:
            yield path.relative_to(study).as_posix(), json.loads(text)


def _inputs(study: Path, records: dict[str, dict]) -> list[str]:
    """Configuration, sheets, and files that jobs read from outside `results`."""
    own = [f"config/{name}" for name in ("config.yaml", "cohorts.tsv", "samples.tsv")]
    found = {name for name in own if (study / name).is_file()}
    found |= {str(name) for r in records.values() for name in r.get("input") or []}
    found = {name for name in found if not name.startswith("results/")}
    for name in sorted(found):
        if not (study / name).exists():
            raise UserError(
                f"{name}, which results of {study} were made from, is not there any more; put it "
                "back, so that its checksum can be recorded."
            )
    return sorted(found)


def _entity(study: Path, name: str) -> dict[str, Any]:
    """A file or folder. One outside the study is named by its content: no path is given away."""
    path = study / name
    inside = path.resolve().is_relative_to(study.resolve())
    if inside:
        name = path.resolve().relative_to(study.resolve()).as_posix()
    if path.is_dir():
        address = f"{quote(name)}/" if inside else f"#{quote(path.name)}"
        return {"@id": address, "@type": "Dataset", "name": name if inside else path.name}
    with open(path, "rb") as file:
        checksum = hashlib.file_digest(file, "sha256")
    hashed = base64.urlsafe_b64encode(checksum.digest()).decode().rstrip("=")
    return {
        # RFC 6920: a name that is the digest.
        "@id": quote(name) if inside else f"ni:///sha-256;{hashed}",
        "@type": "File",
        "name": name if inside else path.name,
        "contentSize": str(path.stat().st_size),
        "sha256": checksum.hexdigest(),
        "encodingFormat": MEDIA.get(path.suffix, "application/octet-stream"),
    }


def _parameters(config: dict, prefix: str = "") -> Iterator[dict[str, Any]]:
    """Every key of the complete configuration with its value."""
    for key, value in config.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict) and value:
            yield from _parameters(value, f"{name}.")
        else:
            plain = value if isinstance(value, str | int | float | bool) else json.dumps(value)
            yield {
                "@id": f"#{quote(name)}",
                "@type": "PropertyValue",
                "name": name,
                "value": plain,
            }


def _programs() -> list[dict[str, Any]]:
    """Popdesic first, then what it runs on, in the versions of this environment."""
    rows = []
    for name in PROGRAMS:
        with contextlib.suppress(PackageNotFoundError):
            rows.append((name, version(name)))
    others = [
        {
            "@id": f"#{name}-{number}",
            "@type": "SoftwareApplication",
            "name": name,
            "softwareVersion": number,
        }
        for name, number in rows
    ]
    popdesic = {
        "@id": f"#popdesic-{__version__}",
        "@type": "SoftwareApplication",
        "name": "Popdesic",
        "softwareVersion": __version__,
        "softwareRequirements": _references(others),
    }
    return [popdesic, *others]


def _without_repeats(graph: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Two files outside the study may have the same content, and then the same name."""
    return list({entity["@id"]: entity for entity in graph}.values())


def _write(path: Path, content: dict[str, Any]) -> None:
    """Write the file whole; it is no result, so without a checksum."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    temporary.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", "utf-8")
    temporary.replace(path)


def _references(entities: list[dict[str, Any]]) -> list[dict[str, str]]:
    return [{"@id": name} for name in dict.fromkeys(e["@id"] for e in entities)]


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(int(seconds), UTC).isoformat()
