"""config/config.yaml: read like PyYAML, judged like jsonschema, or refused with one sentence."""

from __future__ import annotations

import copy
import functools
import itertools
import json
import math
import random
import re
from pathlib import Path
from typing import Any

import jsonschema
import yaml
from fuzz.damage import ODD, damaged

from popdesic.core.errors import UserError
from popdesic.core.schemas import load_schema
from popdesic.study.configuration import fill_config, read_config

SCHEMA = load_schema("config")
DEFAULTS = fill_config({})
VALIDATOR = jsonschema.Draft7Validator(SCHEMA)
CONFIG = "config/config.yaml"
DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
#: Errors that no schema expresses; for all others, jsonschema must report an error too.
FURTHER = re.compile(
    "finite number|must be one line|is not a window|ld_prune|prune is|compare.ld.region is|"
    "geodesic.alpha|compare.ld.window is|communities.space is|"
    "export.formats has|contigs.haploid has|impute.stages has|is no block|is now|is gone|"
    "geodesic.space has 'ibd'|communities.methods has|"
    "embedding.stable places"
)
NUMBERS = [0, 1, 2, -1, 0.5, 2.0, 1e-6, 1e300, -0.0, 10**20, 10**400, math.nan, math.inf]
VALUES = [None, True, False, "", [], {}, [1, 2], {"a": 1}, [[]], "1e-6", "0.5", *NUMBERS]


class Configuration:
    """`text` of the file; `given`: the values it was written from, unless it was damaged later."""

    name = "configuration"

    def generate(self, rng: random.Random) -> dict:
        given = some_of(rng, SCHEMA, rng.choice([0.1, 0.1, 0.2, 0.5]))
        for _ in range(rng.choice([0, 0, 0, 1, 1, 2, 3])):
            changed(rng, given)
        plain = not holds(
            given, lambda value: isinstance(value, float) and not math.isfinite(value)
        )
        plain = plain and not holds(given, lambda v: isinstance(v, int) and abs(v) > 10**300)
        if rng.random() < 0.25 and plain:
            text = json.dumps(given, ensure_ascii=rng.random() < 0.5)
        else:
            flow = rng.choice([None, True, False])
            given = jsonlike(given)
            text = yaml.dump(
                given, Dumper=DUMPER, default_flow_style=flow, allow_unicode=True, width=80
            )
        whole = True
        if rng.random() < 0.5:
            whole, text = False, rewritten(rng, text)
        raw = text.encode("utf-8", "replace")
        if rng.random() < 0.25:
            whole, raw = False, damaged(rng, raw)
        return {"text": raw, "whole": whole}

    def check(self, case: dict, folder: Path) -> str:
        (folder / "config").mkdir(exist_ok=True)
        (folder / CONFIG).write_bytes(case["text"])
        try:
            content = read_config(folder)
            filled = fill_config(content)
        except UserError as error:
            assert str(error).startswith((CONFIG, "config/")), error
            if case["whole"]:
                self._check_refusal(case["text"], str(error))
            raise
        same(content, as_snakemake(case["text"]) or {})
        assert not list(VALIDATOR.iter_errors(filled))
        default = (
            fill_config({"species": content["species"]}) if content.get("species") else DEFAULTS
        )
        compare(filled, in_order(content), default, SCHEMA)
        assert not holds(
            filled, lambda value: isinstance(value, float) and not math.isfinite(value)
        )
        if len(case["text"]) % 4 == 0:
            assert fill_config(filled) == filled, "a filled configuration is a configuration"
        return "equal"

    def _check_refusal(self, raw: bytes, sentence: str) -> None:
        """Check that there was a reason to refuse."""
        given = as_snakemake(raw)
        if not isinstance(given, dict) or FURTHER.search(sentence):
            return
        assert list(VALIDATOR.iter_errors(as_text(filled_with_defaults(given, SCHEMA)))), sentence


def as_snakemake(raw: bytes) -> Any:
    """The file as Snakemake's loader reads it: JSON, else YAML."""
    text = raw.decode("utf-8")
    try:
        return json.loads(text)
    except ValueError:
        return yaml.load(text, Loader=yaml.FullLoader)


def same(ours: Any, theirs: Any) -> None:
    """Whether two values are equal, including their types; NaN equals NaN."""
    assert type(ours) is type(theirs), (ours, theirs)
    if isinstance(ours, dict):
        assert list(map(repr, ours)) == list(map(repr, theirs))
        for one, other in zip(ours.values(), theirs.values(), strict=True):
            same(one, other)
    elif isinstance(ours, list):
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            same(one, other)
    else:
        assert repr(ours) == repr(theirs)


def compare(filled: Any, given: Any, default: Any, schema: dict) -> None:
    """Check that given values are kept and all others have their defaults."""
    if "properties" not in schema:
        wanted = default if given is None else given
        if isinstance(wanted, dict):
            wanted = {str(key): value for key, value in wanted.items()}
        if isinstance(wanted, str):
            wanted = wanted.rstrip("\n")
        assert filled == wanted, (filled, wanted)
        if schema.get("type") == "integer":
            assert type(filled) is int
        return
    given = {} if given is None else given
    assert list(filled) or not schema["properties"]
    assert set(filled) == set(schema["properties"])
    for key, child in schema["properties"].items():
        compare(filled[key], given.get(key), default[key], child)


def filled_with_defaults(value: Any, schema: dict) -> Any:
    if not isinstance(value, dict) or "properties" not in schema:
        return value
    filled = dict(value)
    for key, child in schema["properties"].items():
        given = filled.get(key)
        filled[key] = filled_with_defaults(child["default"] if given is None else given, child)
    return filled


def in_order(config: dict) -> dict:
    """The classes of sites, whose order means nothing, in the schema's order."""
    config = copy.deepcopy(config)
    block = config.get("sites")
    if isinstance(block, dict) and block.get("classes") is not None:
        known = SCHEMA["properties"]["sites"]["properties"]["classes"]["items"]["enum"]
        block["classes"].sort(key=known.index)
    return config


def as_text(config: dict) -> dict:
    """Integer keys of `contigs.haploid` as text, because they are contigs."""
    config = copy.deepcopy(config)
    block = config.get("contigs")
    if isinstance(block, dict) and isinstance(block.get("haploid"), dict):
        block["haploid"] = {str(key): value for key, value in block["haploid"].items()}
    return config


# --- writing configurations -----------------------------------------------------------------------


def some_of(rng: random.Random, schema: dict, share: float = 0.3) -> dict:
    """A mapping that the schema accepts, with a share of the keys."""
    keys = [key for key in schema["properties"] if rng.random() < share]
    return {key: value_of(rng, schema["properties"][key]) for key in keys}


def value_of(rng: random.Random, schema: dict) -> Any:
    """A value that the schema accepts."""
    if "properties" in schema and schema.get("type") == "object":
        return some_of(rng, schema) | {
            key: value_of(rng, schema["properties"][key]) for key in schema.get("required", [])
        }
    if "anyOf" in schema:
        return value_of(rng, rng.choice(schema["anyOf"]))
    if "enum" in schema:
        return rng.choice(schema["enum"])
    if "const" in schema:
        return schema["const"]
    kind = schema.get("type")
    kind = rng.choice(kind) if isinstance(kind, list) else kind
    low, high = schema.get("minimum", 0), schema.get("maximum", 50)
    if kind == "integer":
        value = rng.randint(low, max(low, min(high, 1000)))
        return float(value) if rng.random() < 0.1 else value
    if kind == "number":
        low = schema.get("exclusiveMinimum", low)
        high = min(high, schema.get("exclusiveMaximum", high))
        return low + (high - low) * rng.choice([0.25, 0.5, 0.125, 0.75])
    if kind == "boolean":
        return rng.random() < 0.5
    if kind == "array":
        items = schema.get("items", {"type": "number"})
        size = rng.randint(schema.get("minItems", 0), schema.get("maxItems", 3))
        values = [value_of(rng, items) for _ in range(size)]
        if not schema.get("uniqueItems"):
            return values
        unique = list({repr(value): value for value in values}.values())
        return unique or [value_of(rng, items)] * schema.get("minItems", 0)
    if kind == "object":
        names = rng.sample(["X", "MT", 23, "chrX", "default", "24"], rng.randint(0, 4))
        return {name: value_of(rng, schema["additionalProperties"]) for name in names}
    if kind == "string":
        return rng.choice(["config/samples.tsv", "x", "250 kb", "0.5 cM", "2:1-9", "auto", "a b"])
    return None


def changed(rng: random.Random, given: dict) -> None:
    """A configuration in which one value, key or part is replaced by something odd."""
    at = given
    while True:
        keys = [key for key, value in at.items() if isinstance(value, dict) and value]
        if not keys or rng.random() < 0.4:
            break
        at = at[rng.choice(keys)]
    kind = rng.randrange(4)
    if kind == 0 or not at:
        at[rng.choice([*ODD, *NUMBERS, None, True, "distence"])] = copy.deepcopy(rng.choice(VALUES))
    elif kind == 1:
        at[rng.choice(list(at))] = copy.deepcopy(rng.choice([*VALUES, *ODD]))
    elif kind == 2:
        key = rng.choice(list(at))
        value = at.pop(key)
        at[f"{key}s" if isinstance(key, str) else str(key)] = value
    else:
        key = rng.choice(list(at))
        if isinstance(at[key], list):
            at[key].insert(rng.randint(0, len(at[key])), copy.deepcopy(rng.choice(VALUES)))
        else:
            at[key] = [at[key]]


def jsonlike(value: Any) -> Any:
    """A value that can be written as YAML: no surrogates, numbers small enough to be printed."""
    if isinstance(value, dict):
        return {key: jsonlike(one) for key, one in value.items()}
    return [jsonlike(one) for one in value] if isinstance(value, list) else value


def holds(value: Any, test) -> bool:
    if isinstance(value, dict):
        return any(map(functools.partial(holds, test=test), (*value, *value.values())))
    if isinstance(value, list):
        return any(holds(one, test) for one in value)
    return test(value)


def rewritten(rng: random.Random, text: str) -> str:
    """The text with aliases, tags, repeated keys, deep nesting or another layout."""
    lines = text.split("\n")
    at = rng.randrange(len(lines))
    kind = rng.randrange(13)
    if kind == 0:
        lines.insert(at, lines[rng.randrange(len(lines))])
    elif kind == 1:
        lines[at] = lines[at].replace(
            ": ", rng.choice([": &a ", ": *a ", ": !!int ", ": !x ", ":"])
        )
    elif kind == 2:
        names = "abcdefghij"[: rng.randint(2, 10)]
        width = rng.randint(1, 12)
        lines.append(f"a: &a [{', '.join('x' * width)}]")
        for before, name in itertools.pairwise(names):
            lines.append(f"{name}: &{name} [{', '.join([f'*{before}'] * width)}]")
    elif kind == 3:
        lines.append("x: " + "[" * rng.choice([3, 40, 60, 2000]) + "]" * rng.choice([0, 3, 40, 60]))
    elif kind == 4:
        lines.append("- " * rng.choice([3, 40, 60, 2000]) + "x")
    elif kind == 5:
        lines.insert(at, rng.choice(["---", "...", "%YAML 1.1", "# x", "\t", "<<: {device: cpu}"]))
    elif kind == 6:
        lines[at] = lines[at].replace(" ", "\t", 1)
    elif kind == 7:
        lines[at] = f"{lines[at]}{rng.choice(ODD)}"
    elif kind == 8:
        lines.append(
            f"seed: {rng.choice(['1' + '0' * 6000, '0o7', '1:30', '2024-02-30', '=', '~'])}"
        )
    elif kind == 9:
        lines.append("base: &b {seed: 1}\nembedding: {<<: *b, seed: 2}")
    elif kind == 10:
        return text + text
    elif kind == 11:
        lines.append("? [a, b]\n: c")
    else:
        lines.append(f"__use_yte__: {rng.choice(['true', 'false'])}")
    return "\n".join(lines)


TARGETS = [Configuration()]
