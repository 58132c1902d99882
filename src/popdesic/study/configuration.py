"""The study's configuration, filled with defaults and checked before any job runs.

Every problem is one sentence that names the key and the value (`UserError`). The schema is checked
by jsonschema, whose paths name the key; pydantic would need its own copy of the schema, which
Snakemake, the page and the documentation read, and its sentences name no way out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from ..cohort.genotype_choice import check_genotypes
from ..cohort.species import with_species
from ..core.errors import CONTROL, UserError, shorten, suggestion
from ..core.files import is_file, path_exists
from ..core.schemas import load_schema
from ..ibd.options import EXPORTS as SEGMENT_FORMATS
from ..io.site_classes import CLASSES
from ..relatives.options import check_options
from .old_keys import OLD_BLOCKS, refuse_old

#: Where a study keeps its configuration, relative to its folder.
CONFIG_PATH = Path("config/config.yaml")
#: Limits of a configuration file: bytes, values after alias expansion, nesting levels.
MAX_BYTES, MAX_VALUES, MAX_LEVELS = 1 << 18, 100_000, 50
#: Largest number accepted: larger integers are not exact as floats, and no setting needs them.
MAX_NUMBER = 1 << 53
#: The loader Snakemake uses; libyaml's accepts tabs and other text that this one refuses.
_LOADER = yaml.SafeLoader


def read_config(folder: Path = Path()) -> dict:
    """Read a study's config/config.yaml, without filling in defaults or checking the schema.

    The file is JSON or YAML, parsed as Snakemake parses it. An empty or missing file is an empty
    configuration, because every key has a default.

    Raises
    ------
    UserError
        The file is not UTF-8, not valid YAML or not a mapping, has a duplicate key, a tag or a YTE
        template, or is too large after alias expansion (computed without expanding).
    """
    path, shown = folder / CONFIG_PATH, str(CONFIG_PATH)
    if not is_file(path):
        if path_exists(path):
            raise UserError(f"{shown} is not a file; write the configuration there.")
        return {}
    try:
        with open(path, "rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise UserError(
            f"{shown} cannot be read ({error.strerror}); correct its permissions."
        ) from None
    if len(raw) > MAX_BYTES:
        raise UserError(
            f"{shown} has more than {MAX_BYTES} bytes, which no configuration needs; correct the "
            "file."
        )
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(
            f"{shown} is not UTF-8 text (byte {error.start}); save it as UTF-8."
        ) from None
    content = _parse(text, shown)
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise UserError(
            f"{shown} is not a mapping of keys to values but {shorten(repr(content), 40)}; write "
            "lines such as 'device: cpu'."
        )
    if "__use_yte__" in content:
        raise UserError(
            f"{shown}: '__use_yte__' requests a YTE template; write the values themselves."
        )
    return content


def _depth(text: str) -> int:
    """How deep brackets are nested, those in strings included."""
    depth = most = 0
    for bracket in re.findall(r"[\[\]{}]", text):
        depth += 1 if bracket in "[{" else -1
        most = max(most, depth)
    return most


def _parse(text: str, shown: str) -> Any:
    try:
        if _depth(text) <= MAX_LEVELS:
            return json.loads(text, object_pairs_hook=lambda pairs: _without_repeats(pairs, shown))
    except ValueError:
        pass  # not JSON, so YAML
    try:
        _check_extent(text, shown)
        loader = _LOADER(text)
        try:
            node = loader.get_single_node()
            if node is None:
                return None
            _check_keys(node, loader, shown)
            return loader.construct_document(node)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        # The parser may notice an error only after the last line.
        where = f", row {min(mark.line, text.count(chr(10))) + 1}" if mark else ""
        raise UserError(f"{shown}{where}: not valid YAML ({error.problem}); correct it.") from None
    except (yaml.YAMLError, ValueError) as error:  # ValueError: invalid numbers and dates
        reason = " ".join(str(error).split())
        raise UserError(f"{shown} is not valid YAML ({reason}); correct it.") from None


def _without_repeats(pairs: list[tuple[str, Any]], shown: str) -> dict:
    content = {}
    for key, value in pairs:
        if key in content:
            raise UserError(f"{shown}: the key '{key}' appears twice; keep one.")
        content[key] = value
    return content


def _check_extent(text: str, shown: str) -> None:
    """Refuse a file that is nested too deeply, or too large after alias expansion.

    Values are counted from parser events and nothing is built, so ten lines of aliases that expand
    to billions of values cost ten steps.
    """
    sizes: dict[str, int] = {}
    open_parts: list[list] = [[None, 0]]  # anchor, values so far
    for event in yaml.parse(text, Loader=_LOADER):
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in sizes:
                raise UserError(
                    f"{shown}, row {event.start_mark.line + 1}: the alias '*{event.anchor}' does "
                    "not refer to a complete value before it; write the values themselves."
                )
            open_parts[-1][1] += sizes[event.anchor]
        elif isinstance(event, yaml.NodeEvent):
            if event.tag is not None:
                raise UserError(
                    f"{shown}, row {event.start_mark.line + 1}: the tag '{event.tag}' is not "
                    "allowed; write the value without it, in quotes if it begins with '!'."
                )
            if isinstance(event, yaml.ScalarEvent):
                open_parts[-1][1] += 1
                if event.anchor:
                    sizes[event.anchor] = 1
            else:
                open_parts.append([event.anchor, 1])
                if len(open_parts) > MAX_LEVELS:
                    raise UserError(
                        f"{shown}, row {event.start_mark.line + 1}: more than {MAX_LEVELS} nested "
                        "levels, which no configuration needs; correct the file."
                    )
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, size = open_parts.pop()
            open_parts[-1][1] += size
            if anchor:
                sizes[anchor] = size
        if open_parts[-1][1] > MAX_VALUES:
            raise UserError(
                f"{shown}: more than {MAX_VALUES} values after its aliases (*) are expanded, "
                "which no configuration needs; write the values themselves."
            )


def _check_keys(root: yaml.Node, loader: Any, shown: str) -> None:
    """Refuse duplicate keys; the parser would silently use the last one."""
    waiting, seen = [root], set()
    while waiting:
        node = waiting.pop()
        if id(node) in seen or isinstance(node, yaml.ScalarNode):
            continue
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            waiting += node.value
            continue
        known: dict[Hashable, int] = {}
        for key_node, value_node in node.value:
            waiting.append(value_node)
            row = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                raise UserError(f"{shown}, row {row}: a key is one word, not a list or mapping.")
            merged = key_node.tag == "tag:yaml.org,2002:merge"
            key = "<<" if merged else loader.construct_object(key_node)
            if key in known:
                raise UserError(
                    f"{shown}, row {row}: the key '{key}' already appears in row {known[key]}; "
                    "keep one."
                )
            known[key] = row


def fill_config(config: dict, source: str = "config/config.yaml") -> dict:
    """Fill in all defaults of `config` and check it.

    Raises
    ------
    UserError
        A key of an earlier version, with what became of it; an unknown key (with the closest known
        one), a value out of range, or two contradictory values.
    """
    schema = load_schema("config")
    refuse_old(config or {}, source)
    filled = _with_text_keys(_with_defaults(with_species(config or {}), schema), source)
    for error in sorted(jsonschema.Draft7Validator(schema).iter_errors(filled), key=_error_order):
        raise UserError(_config_sentence(error, source))
    filled = _plain(filled, schema, source, [])
    filled["sites"]["classes"].sort(key=CLASSES.index)  # their order means nothing
    for index, alpha in enumerate(filled["geodesic"]["alpha"]):
        # File names contain alpha with six significant digits, and alpha is read back from them.
        if alpha != "auto" and not (float(f"{alpha:g}") == alpha):
            raise UserError(
                f"{source}: geodesic.alpha[{index}] is {alpha}, but must be a finite number of at "
                "most six significant digits."
            )
    check_genotypes(filled, source)
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
    spaces, space = filled["geodesic"]["space"], filled["communities"]["space"]
    sought = "ibd" in filled["compare"]["analyses"]
    if filled["communities"]["methods"] and space == "ibd" and not sought:
        raise UserError(
            f"{source}: communities.space is 'ibd', but no segments are sought; add ibd to "
            "compare.analyses or set communities.space to auto."
        )
    if "ibd" in spaces and not sought:
        raise UserError(
            f"{source}: geodesic.space has 'ibd', but no segments are sought; add ibd to "
            "compare.analyses or remove it."
        )
    method = filled["impute"]["method"]
    if "painting" in filled["communities"]["methods"] and method != "copying":
        raise UserError(
            f"{source}: communities.methods has 'painting', but impute.method is '{method}', which "
            "phases no haplotypes; set impute.method to 'copying' or remove 'painting'."
        )
    if "sweeps" in filled["population"]["analyses"]:
        if method != "copying":
            raise UserError(
                f"{source}: population.analyses has 'sweeps', but impute.method is '{method}', "
                "which phases no haplotypes; set impute.method to 'copying' or remove 'sweeps'."
            )
        if filled["panel"]["ld_prune"]:
            raise UserError(
                f"{source}: population.analyses has 'sweeps', which follows LD along haplotypes, "
                "but panel.ld_prune removes sites in LD; remove one of them."
            )
    segments = [name for name in filled["export"]["formats"] if name in SEGMENT_FORMATS]
    if segments and not sought:
        raise UserError(
            f"{source}: export.formats has '{segments[0]}', but no segments are sought; add ibd to "
            "compare.analyses or remove it."
        )
    if spaces == ["ibd"]:
        raise UserError(
            f"{source}: geodesic.space has 'ibd' alone, which leaves samples apart that share no "
            "segments; add pcs or genotypes."
        )
    if "ibd" in spaces and filled["embedding"]["stable"]:
        raise UserError(
            f"{source}: embedding.stable places newcomers by their founders, with whom they may "
            "share no segments; remove 'ibd' from geodesic.space or set embedding.stable to false."
        )
    if filled["communities"]["methods"] and space not in ("auto", "ibd", *spaces):
        raise UserError(
            f"{source}: communities.space is '{space}', but geodesic.space has "
            f"{', '.join(spaces)} only; add it there or set communities.space to auto."
        )
    return filled


def _with_text_keys(config: dict, source: str) -> dict:
    """Convert contigs of `contigs.haploid` to text: YAML reads `{23: …}` as an integer key."""
    block = config.get("contigs")
    haploid = block.get("haploid") if isinstance(block, dict) else None
    if not isinstance(haploid, dict):
        return config
    named = {}
    for key, value in haploid.items():
        if not isinstance(key, (int, str)) or isinstance(key, bool):
            raise UserError(
                f"{source}: contigs.haploid has the key {shorten(repr(key))}, which is not a "
                "contig name; write it in quotes."
            )
        if str(key) in named:
            raise UserError(f"{source}: contigs.haploid has the contig '{key}' twice; keep one.")
        named[str(key)] = value
    return config | {"contigs": block | {"haploid": named}}


def _plain(value: Any, schema: dict, source: str, path: list) -> Any:
    """Convert 2.0 to 2 if the schema requires an integer; refuse control characters and NaN."""
    if isinstance(value, dict):
        known = schema.get("properties", {})
        return {k: _plain(v, known.get(k, {}), source, [*path, k]) for k, v in value.items()}
    if isinstance(value, list):
        items = schema.get("items", {})
        return [_plain(v, items, source, [*path, k]) for k, v in enumerate(value)]
    if isinstance(value, str):
        value = value.rstrip("\n")  # YAML's folded text ends with a newline
        if CONTROL.search(value):
            raise UserError(
                f"{source}: {_dotted(path)} is {shorten(repr(value))}, but must be one line "
                "without control characters."
            )
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if not abs(value) <= MAX_NUMBER:  # also refuses NaN
            raise UserError(
                f"{source}: {_dotted(path)} is {shorten(repr(value), 30)}, but must be a finite "
                f"number of at most {MAX_NUMBER}."
            )
        if isinstance(value, float) and value.is_integer() and _allows_integer(schema):
            return int(value)
    return value


def _allows_integer(schema: dict) -> bool:
    if "anyOf" in schema:
        return any(_allows_integer(choice) for choice in schema["anyOf"])
    return schema.get("type") == "integer" or any(
        isinstance(choice, int) for choice in schema.get("enum", [])
    )


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
    # Unknown keys first: a misspelt key may be the cause of the other errors.
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
        unknown = str(next(key for key in error.instance if key not in known))
        if (dotted := _dotted([*path, unknown])) in OLD_BLOCKS:
            new = OLD_BLOCKS[dotted]
            where = f"; its keys are in '{new}'" if new else ", nor are its keys"
            return f"{source}: '{dotted}' is no block of the configuration any more{where}."
        return (
            f"{source}: '{_dotted([*path, shorten(unknown)])}' is not a configuration key"
            f"{suggestion(unknown, known)}"
        )
    value = shorten(repr(error.instance))
    return f"{source}: {_dotted(path)} is {value}, but {_requirement(error)}."


def _requirement(error: jsonschema.ValidationError) -> str:
    limit = error.validator_value
    if error.validator == "anyOf":
        return "must be " + " or ".join(_alternative(choice) for choice in limit)
    if error.validator == "type" and "number" in limit and _is_text_exponent(error.instance):
        return "must be of type number, and YAML reads this as text (write 1.0e-6 for 1e-6)"
    if error.validator == "required":
        return f"must have {', '.join(map(repr, limit))}"
    return {
        "minimum": f"must be at least {limit}",
        "maximum": f"must be at most {limit}",
        "exclusiveMinimum": f"must be above {limit}",
        "exclusiveMaximum": f"must be below {limit}",
        "enum": f"must be one of {limit}",
        "type": f"must be of type {limit}",
        "minLength": "must not be empty",
        "minItems": f"must have at least {limit} entry",
        "maxItems": f"must have at most {limit} entries",
        "uniqueItems": "must not repeat an entry",
    }.get(error.validator, "has a value that is not allowed")


def _is_text_exponent(value: Any) -> bool:
    """Whether a string looks like 1e-6, which YAML reads as a number only with a decimal point."""
    return isinstance(value, str) and re.fullmatch(r"[-+]?\d+[eE][-+]?\d+", value) is not None


def _alternative(choice: dict) -> str:
    if "const" in choice:
        return repr(choice["const"])
    if "enum" in choice:
        return f"one of {choice['enum']}"
    if "additionalProperties" in choice:
        return "a mapping of names to " + _alternative(choice["additionalProperties"])
    least = f" of at least {choice['minimum']}" if "minimum" in choice else ""
    return f"a {choice['type']}{least}"
