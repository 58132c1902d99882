"""Rewrite a configuration of an earlier version (`popdesic init --upgrade`).

`upgraded` turns the values; `rewritten` makes the same changes in the text, so that comments and
order stay. Text that cannot be changed in place is written anew.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from ..core.errors import UserError, shorten
from ..core.files import atomic_path, path_exists
from ..core.schemas import load_schema
from .configuration import CONFIG_PATH, fill_config, read_config
from .old_keys import OLD, OLD_BLOCKS, given_old, instead

#: Old keys that say whether a stage reads imputed genotypes -> its name in `impute.stages`.
STAGES = {
    "distance.missing": "distance",
    "embedding.genotypes": "pca",
    "compare.ld.genotypes": "ld",
    "export.genotypes": "export",
    "epistasis.genotypes": "epistasis",
}
#: Keys whose former default a new default of `auto` covers.
COVERED = ("error_rate",)
#: Ending of the copy of the old file.
BACKUP = ".before-upgrade"


def upgrade_study(folder: Path) -> str:
    """Rewrite a study's config/config.yaml with the keys of this version.

    Returns
    -------
    str
        What was changed, a line each, and where the old file is; or that nothing had to change.

    Raises
    ------
    UserError
        There is no such file, it is not valid, or old keys that are one now have different values.
        Nothing is written then.
    """
    path = folder / CONFIG_PATH
    if not path_exists(path):
        raise UserError(f"{path} does not exist; name the folder of a study.")
    config = read_config(folder)
    new, changes = upgraded(config)
    if not changes:
        return f"{path}: no key of an earlier version; nothing was changed."
    fill_config(new)
    before = path.read_text("utf-8")
    text = rewritten(before, config, new)
    if text is None:
        text = yaml.safe_dump(new, sort_keys=False, allow_unicode=True)
        changes.append("The file was written anew: its comments are in the copy alone.")
    backup = path.with_name(path.name + BACKUP)
    if path_exists(backup):
        raise UserError(f"{backup} already exists and is not overwritten; move it away first.")
    backup.write_text(before, "utf-8")
    with atomic_path(path) as out:
        out.write_text(text, "utf-8")
    return "\n".join([*changes, f"{path} is rewritten; the old file is {backup}."])


def upgraded(config: dict) -> tuple[dict, list[str]]:
    """A configuration with new keys in place of old ones, and a sentence for each change.

    Raises
    ------
    UserError
        Old keys that are one now have different values.
    """
    new, changes = copy.deepcopy(config), []
    old = {key: _was(key) if value is None else value for key, value in given_old(config)}
    shared: dict[str, dict[str, Any]] = {}
    for key, value in old.items():
        _remove(new, key)
        if key in STAGES or key in _CONVERTED:
            continue
        if target := OLD[key].new:
            covered = value in ("", None) or (target in COVERED and value == OLD[key].was)
            if not covered:
                shared.setdefault(target, {})[key] = value
            changes.append(f"{key}: {_shown(value)} → " + (target if not covered else "removed"))
        else:
            changes.append(f"{key}: {_shown(value)} → removed; {instead(key)}")
    for target, values in shared.items():
        if (own := get_key(config, target)) is not None:
            values = {target: own, **values}
        set_key(new, target, _only(target, values))
    changes += _convert(new, config, old)
    changes += _without_empty(new, config)
    return new, changes


def _without_empty(new: dict, old: dict, prefix: str = "") -> list[str]:
    """Remove blocks that lost all their keys, and those that are none any more."""
    changes = []
    for name, block in list(new.items()):
        key, before = f"{prefix}{name}", old.get(name)
        if isinstance(block, dict):
            changes += _without_empty(block, before or {}, f"{key}.")
        if not block and (key in OLD_BLOCKS or (block == {} and before)):
            del new[name]
            if not before:
                changes.append(f"{key}: removed, it was empty")
    return changes


#: Old keys whose values turn into something else (`_convert`).
_CONVERTED = (
    *("impute.evaluate", "impute.evaluate_methods", "distance.export", "ibd.enable", "ibd.export"),
    *("epistasis.binarize", "epistasis.permutations_triples", "epistasis.permutation_units"),
)


def _was(key: str) -> Any:
    return 0 if key == "impute.evaluate" else OLD[key].was


def _only(target: str, values: dict[str, Any]) -> Any:
    """The one value of keys that are one now."""
    (first, value), *others = values.items()
    for key, other in others:
        if other != value:
            raise UserError(
                f"{CONFIG_PATH}: {first} is {_shown(value)} and {key} is {_shown(other)}, but both "
                f"are '{target}' now; give them the same value, then upgrade."
            )
    return value


def _convert(new: dict, config: dict, values: dict[str, Any]) -> list[str]:
    """Turn the old keys of `STAGES` and `_CONVERTED`, with `values`, into values of new keys."""
    changes = []

    def say(key: str, result: str) -> None:
        changes.append(f"{key}: {_shown(values[key])} → {result}")

    def extend(key: str, target: str, names: list[str]) -> None:
        given = get_key(new, target)
        listed = _default(target) if given is None else given
        set_key(new, target, [*listed, *(name for name in names if name not in listed)])
        say(key, f"{target}: {_shown(get_key(new, target))}")

    for key in values.keys() & STAGES.keys():
        if values[key] == "imputed":
            extend(key, "impute.stages", [STAGES[key]])
        else:
            say(key, "removed, as by default")
    methods = values.get("impute.evaluate_methods", ["mode"])
    share = values.get("impute.evaluate", 0)
    if "impute.evaluate" in values:
        set_key(new, "impute.evaluate", methods if share else [])
        say("impute.evaluate", f"impute.evaluate: {_shown(methods if share else [])}")
    if "impute.evaluate_methods" in values:
        say("impute.evaluate_methods", "impute.evaluate")
    sought = values.get("ibd.enable", False)
    if "distance.export" in values:
        if values["distance.export"] is True:
            extend("distance.export", "export.formats", ["mdist"])
        else:
            say("distance.export", "removed; up to 5 000 samples distances are text, too")
    if "ibd.enable" in values:
        if sought:
            extend("ibd.enable", "compare.analyses", ["ibd"])
        else:
            say("ibd.enable", "removed, as by default")
    if "ibd.export" in values:
        if sought and values["ibd.export"]:
            extend("ibd.export", "export.formats", values["ibd.export"])
        else:
            say("ibd.export", "removed, nothing is exported")
    if "epistasis.binarize" in values:
        if values["epistasis.binarize"] == "median":
            set_key(new, "epistasis.transform", "median")
            say("epistasis.binarize", "epistasis.transform: median")
        else:
            say("epistasis.binarize", "removed, as by default")
    if "epistasis.permutations_triples" in values:
        if triples := values["epistasis.permutations_triples"]:
            pairs = get_key(config, "epistasis.permutations")
            pairs = _default("epistasis.permutations") if pairs is None else pairs
            set_key(new, "epistasis.permutations", [pairs, triples])
            say("epistasis.permutations_triples", f"epistasis.permutations: [{pairs}, {triples}]")
        else:
            say("epistasis.permutations_triples", "removed, as by default")
    if "epistasis.permutation_units" in values:
        units = max(get_key(config, "epistasis.units") or 1, values["epistasis.permutation_units"])
        set_key(new, "epistasis.units", units)
        say("epistasis.permutation_units", f"epistasis.units: {units}")
    return changes


def _default(key: str) -> Any:
    schema = load_schema("config")
    for part in key.split("."):
        schema = schema["properties"][part]
    return copy.deepcopy(schema["default"])


def get_key(config: dict, key: str) -> Any:
    """Value of a dotted key; None where there is none."""
    value: Any = config
    for part in key.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def set_key(config: dict, key: str, value: Any) -> None:
    """Give a dotted key a value, in blocks that are made where needed."""
    *blocks, last = key.split(".")
    for block in blocks:
        if not isinstance(config.get(block), dict):
            config[block] = {}
        config = config[block]
    config[last] = value


def _remove(config: dict, key: str) -> None:
    *blocks, last = key.split(".")
    for block in blocks:
        config = config.get(block, {})
    config.pop(last, None)


def _shown(value: Any) -> str:
    return shorten(json.dumps(value, ensure_ascii=False, default=str))


# --- the same changes in the text -----------------------------------------------------------------


def rewritten(text: str, old: dict, new: dict) -> str | None:
    """The text of `old` with the values of `new`; None if it cannot be changed in place."""
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    if not isinstance(root, yaml.MappingNode):
        return None
    if root.flow_style:
        return json.dumps(new, indent=2, ensure_ascii=False) + "\n"
    moved = [OLD[key].new for key, _ in given_old(old) if key in OLD]
    carried = {
        OLD[key].new: comment
        for key, comment in _comments(text, root)
        if key in OLD and moved.count(OLD[key].new) == 1  # else it is about one of several
    }
    edits = list(_edits(text, root, old, new, "", carried))
    # From the end; at one place what is removed before what is added, outer blocks before inner.
    order = sorted(range(len(edits)), key=lambda k: (*edits[k][:2], k), reverse=True)
    for first, last, words in (edits[k] for k in order):
        text = text[:first] + words + text[last:]
    try:
        return text if yaml.load(text, Loader=yaml.SafeLoader) == new else None
    except yaml.YAMLError:
        return None


def _edits(
    text: str, node: yaml.MappingNode, old: dict, new: dict, prefix: str, carried: dict[str, str]
) -> Iterator[tuple[int, int, str]]:
    """Spans of the text and what replaces them, for a mapping in block style."""
    indent = node.value[0][0].start_mark.column
    pairs = {key.value: (key, value) for key, value in node.value}
    end = 0
    for name, (key, value) in pairs.items():
        first = _line_start(text, key.start_mark.index)
        last = _line_end(text, _last_index(value))
        end = max(end, last)
        if name not in new:
            yield first, last, ""
        elif new[name] != old[name]:
            nested = isinstance(value, yaml.MappingNode) and isinstance(new[name], dict)
            if nested and not value.flow_style and value.value:
                yield from _edits(text, value, old[name], new[name], f"{prefix}{name}.", carried)
            else:
                yield key.end_mark.index, _last_index(value) + 1, f": {_flow(new[name])}"
    added = [name for name in new if name not in old]
    at_top = [name for name in added if not prefix and not isinstance(new[name], dict)]
    if at_top:
        where = _line_start(text, node.value[0][0].start_mark.index)
        lines = [_lines(name, new[name], indent, "", carried) for name in at_top]
        yield where, where, "".join(lines)
    if rest := [name for name in added if name not in at_top]:
        lines = [_lines(name, new[name], indent, prefix, carried) for name in rest]
        yield end, end, ("" if text[:end].endswith("\n") else "\n") + "".join(lines)


def _lines(name: str, value: Any, indent: int, prefix: str, carried: dict[str, str]) -> str:
    margin = " " * indent
    if isinstance(value, dict):
        below = [
            _lines(key, one, indent + 2, f"{prefix}{name}.", carried) for key, one in value.items()
        ]
        return f"{margin}{name}:\n" + "".join(below)
    comment = carried.get(prefix + name, "")
    return f"{margin}{name}: {_flow(value)}{comment}\n"


def _comments(text: str, node: yaml.MappingNode, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Keys in block style, and the comment that ends their line."""
    for key, value in node.value:
        name = f"{prefix}{key.value}"
        if isinstance(value, yaml.MappingNode) and not value.flow_style:
            yield from _comments(text, value, f"{name}.")
        else:
            index = _last_index(value) + 1
            rest = text[index : _line_end(text, index)].rstrip("\n")
            if rest.lstrip().startswith("#"):
                yield name, rest


def _flow(value: Any) -> str:
    text = yaml.safe_dump(value, default_flow_style=True, width=10**6, allow_unicode=True)
    return text.removesuffix("\n").removesuffix("\n...")


def _last_index(node: yaml.Node) -> int:
    """Index of the last character of a value, without comments that follow it."""
    if isinstance(node, yaml.ScalarNode) or node.flow_style or not node.value:
        return max(node.start_mark.index, node.end_mark.index - 1)
    last = node.value[-1]
    return _last_index(last[1] if isinstance(node, yaml.MappingNode) else last)


def _line_start(text: str, index: int) -> int:
    return text.rfind("\n", 0, index) + 1


def _line_end(text: str, index: int) -> int:
    found = text.find("\n", index)
    return len(text) if found < 0 else found + 1
