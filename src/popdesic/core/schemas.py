"""JSON schemas of the configuration and the sheets."""

from __future__ import annotations

import functools

import yaml

from .places import SCHEMAS


@functools.cache
def load_schema(name: str) -> dict:
    """Return the JSON schema `workflow/schemas/{name}.schema.yaml`, cached: do not modify it."""
    path = SCHEMAS / f"{name}.schema.yaml"
    # The C loader, where available, is ten times as fast, and every job reads the schemas.
    return yaml.load(path.read_text("utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
