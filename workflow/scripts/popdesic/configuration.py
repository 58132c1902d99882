"""The study's configuration, filled with defaults and checked before any job runs.

Every problem is one sentence that names the key and the value (`UserError`).
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from .compare.options import check_options
from .errors import UserError, suggestion


def load_schema(name: str) -> dict:
    """The JSON schema `workflow/schemas/{name}.schema.yaml`."""
    path = Path(__file__).parents[2] / "schemas" / f"{name}.schema.yaml"
    return yaml.safe_load(path.read_text())


def load_config(config: dict, source: str = "config/config.yaml") -> dict:
    """`config` with all defaults filled in.

    Raises
    ------
    UserError
        A key that the schema does not know (with the nearest one that it does), a value out of
        range, or two values that contradict each other.
    """
    schema = load_schema("config")
    filled = _with_defaults(config or {}, schema)
    for error in sorted(jsonschema.Draft7Validator(schema).iter_errors(filled), key=_error_order):
        raise UserError(_config_sentence(error, source))
    for index, alpha in enumerate(filled["geodesic"]["alpha"]):
        # File names carry alpha with six digits, and the number is read back from them.
        if alpha != "auto" and not (math.isfinite(alpha) and float(f"{alpha:g}") == alpha):
            raise UserError(
                f"{source}: geodesic.alpha[{index}] is {alpha}, but must be a finite number of at "
                "most six digits."
            )
    if filled["distance"]["missing"] == "imputed" and filled["impute"]["method"] == "none":
        raise UserError(
            f"{source}: distance.missing is 'imputed', but impute.method is 'none', so missing "
            "genotypes would count as homozygous REF; set impute.method to 'mode' or "
            "distance.missing to 'pairwise'."
        )
    check_options(filled)
    if "mibs" in filled["export"]["formats"] and filled["distance"]["metric"] not in (
        "ibs",
        "manhattan",
    ):
        raise UserError(
            f"{source}: export.formats has 'mibs', but distance.metric is "
            f"'{filled['distance']['metric']}', which does not count shared alleles; "
            "set distance.metric to 'ibs' or 'manhattan'."
        )
    return filled


def _with_defaults(value: Any, schema: dict) -> Any:
    if not isinstance(value, dict):
        return value
    properties = schema.get("properties", {})
    filled = dict(value)
    for key, child in properties.items():
        if key not in filled or filled[key] is None:
            if "default" not in child:
                continue
            filled[key] = child["default"]
        filled[key] = _with_defaults(filled[key], child)
    return filled


def _error_order(error: jsonschema.ValidationError) -> tuple[int, str]:
    # An unknown key comes first: a misspelt name explains whatever else is wrong.
    return (error.validator != "additionalProperties", "/".join(map(str, error.absolute_path)))


def _dotted(path) -> str:
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


def _config_sentence(error: jsonschema.ValidationError, source: str) -> str:
    path = list(error.absolute_path)
    if error.validator == "additionalProperties":
        known = list(error.schema["properties"])
        unknown = next(key for key in error.instance if key not in known)
        return (
            f"{source}: '{_dotted([*path, unknown])}' is not a configuration key"
            f"{suggestion(str(unknown), known)}"
        )
    return f"{source}: {_dotted(path)} is {error.instance!r}, but {_requirement(error)}."


def _requirement(error: jsonschema.ValidationError) -> str:
    limit = error.validator_value
    if error.validator == "anyOf":
        return "must be " + " or ".join(_alternative(choice) for choice in limit)
    return {
        "minimum": f"must be at least {limit}",
        "maximum": f"must be at most {limit}",
        "enum": f"must be one of {limit}",
        "type": f"must be of type {limit}",
        "minItems": f"must have at least {limit} entry",
        "uniqueItems": "must not repeat an entry",
    }.get(error.validator, error.message)


def _alternative(choice: dict) -> str:
    if "const" in choice:
        return repr(choice["const"])
    if "enum" in choice:
        return f"one of {choice['enum']}"
    if "additionalProperties" in choice:
        return "a mapping of names to " + _alternative(choice["additionalProperties"])
    least = f" of at least {choice['minimum']}" if "minimum" in choice else ""
    return f"a {choice['type']}{least}"
