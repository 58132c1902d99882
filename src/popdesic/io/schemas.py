"""JSON schemas of the configuration and the sheets."""

from __future__ import annotations

import functools

import yaml

from .places import SCHEMAS


@functools.cache
def load_schema(name: str) -> dict:
    """The JSON schema `workflow/schemas/{name}.schema.yaml`; nobody changes it."""
    path = SCHEMAS / f"{name}.schema.yaml"
    # Ten times as fast where it is there, and every job reads the schemas.
    return yaml.load(path.read_text("utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
