"""Kernel sources with their `#include`s resolved; no CuPy needed."""

from __future__ import annotations

import re

import pytest

from popdesic.core.errors import UserError
from popdesic.core.places import KERNEL_FOLDER
from popdesic.engine import sources

NAMES = sorted(
    str(path.relative_to(KERNEL_FOLDER).with_suffix("")) for path in KERNEL_FOLDER.rglob("*.cu")
)


def test_includes_are_resolved_once_and_relative_to_their_file(tmp_path, monkeypatch):
    (tmp_path / "family").mkdir()
    (tmp_path / "base.cuh").write_text("#pragma once\nint base;\n")
    (tmp_path / "family" / "part.cuh").write_text(
        '#pragma once\n#include "../base.cuh"\nint part;\n'
    )
    (tmp_path / "family" / "kernel.cu").write_text(
        '#include "../base.cuh"\n#include "part.cuh"\nint kernel;\n'
    )
    monkeypatch.setattr(sources, "KERNEL_FOLDER", tmp_path)
    text = sources.read_source("family/kernel")
    assert text.split() == ["int", "base;", "int", "part;", "int", "kernel;"]
    (tmp_path / "base.cuh").write_text("#pragma once\nlong base;\n")
    assert sources.read_source("family/kernel") != text  # so that CuPy's cache notices the change


@pytest.mark.parametrize("name", NAMES)
def test_no_include_is_left(name):
    assert not re.search(r"^\s*#\s*(include|pragma once)", sources.read_source(name), re.MULTILINE)


@pytest.mark.parametrize("path", sorted(KERNEL_FOLDER.rglob("*.cuh")), ids=lambda path: path.name)
def test_headers_are_included_once(path):
    assert path.read_text().count("#pragma once\n") == 1


def test_a_missing_source_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "KERNEL_FOLDER", tmp_path)
    with pytest.raises(UserError, match=r"kernel\.cu: this CUDA source cannot be read"):
        sources.read_source("kernel")
