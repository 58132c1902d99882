"""Constants shared by Python and CUDA are written once: in Python, passed to the compiler as -D."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import numpy as np
import pytest
from support.launches import HOPPER, scan_shape

from popdesic.core.places import KERNEL_FOLDER
from popdesic.engine import layout, tune_plan, variants
from popdesic.engine.bitgemm_plan import Pass
from popdesic.engine.layout import DEFINES
from popdesic.engine.minplus import INFINITY_INT32, INFINITY_INT64
from popdesic.engine.terms import PLANE_LETTERS
from popdesic.epistasis import scan_plan

KERNELS = sorted([*KERNEL_FOLDER.rglob("*.cu"), *KERNEL_FOLDER.rglob("*.cuh")])
PACKAGE = Path(layout.__file__).parents[1]


def name_of(path: Path) -> str:
    return str(path.relative_to(KERNEL_FOLDER))


def launch_defines() -> set[str]:
    """Names that launches define in addition to the common ones."""
    names = set(scan_plan.scan_defines(wide=0, states=2))
    for core in scan_plan.CORES.values():
        names |= set(scan_shape(core, order=3, states=2).defines)
    for variant in tune_plan.variants_to_measure(HOPPER):
        names |= {name for name, _ in variants.defines_of(variant, Pass((), (1, 1, 1)), True)}
    return names


DEFINED = launch_defines().union(*DEFINES.values())


def constants_of_python() -> set[str]:
    """Upper-case names assigned in the modules that launch kernels."""
    names = set()
    launching = [*PACKAGE.rglob("*_gpu.py"), *PACKAGE.rglob("*_plan.py")]
    shared = [PACKAGE / f"engine/{name}.py" for name in ("layout", "variants", "devices")]
    for path in (*launching, *shared):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    names |= {n.id for n in ast.walk(target) if isinstance(n, ast.Name)}
    return {name for name in names if name.isupper()}


def code_of(path: Path) -> str:
    return re.sub(r"//[^\n]*", "", path.read_text())


def constants_of_cuda(path: Path) -> dict[str, str]:
    """Names and values of a file's `constexpr` constants."""
    found = {}
    for declared in re.findall(r"constexpr \w+ ([^;{(]+);", code_of(path)):
        for one in re.split(r",(?![^<]*>)", declared):
            name, _, value = one.partition("=")
            found[name.strip()] = value.strip()
    return found


@pytest.mark.parametrize("path", KERNELS, ids=name_of)
def test_no_constant_is_written_twice(path):
    """No `constexpr` repeats a defined name, and none with a literal number a name in Python."""
    for name, value in constants_of_cuda(path).items():
        assert name not in DEFINED
        number = re.fullmatch(r"[\dx'uUlL<. f]+", value)
        assert not (number and name in constants_of_python()), f"{name} = {value}"


def test_constants_are_found():
    path = KERNEL_FOLDER / "bitgemm" / "rare_sites.cu"
    assert {"LEVELS": "14", "LIST": "8192"}.items() <= constants_of_cuda(path).items()
    assert {"TILE_ROWS", "EMIT_STAGES", "CANDIDATES"} <= constants_of_python()
    assert {"STAGES", "LAUNCH_SHARED", "SEGMENTS", "TILE_SITES"} <= DEFINED


@pytest.mark.parametrize("path", KERNELS, ids=name_of)
def test_files_do_not_compile_without_their_definitions(path):
    """A file, or a header that it includes, checks for every common definition that it uses."""

    def demanded(file: Path) -> set[str]:
        text = file.read_text()
        names = set(re.findall(r"!defined\((\w+)\)", text))
        for other in re.findall(r'^#include "([^"]+)"', text, re.MULTILINE):
            names |= demanded((file.parent / other).resolve())
        return names

    family = name_of(path).split("/")[0]
    common = DEFINES.get(family, {**DEFINES["bitgemm"], **DEFINES["epistasis"]})
    used = set(re.findall(r"\b[A-Z][A-Z_0-9]+\b", code_of(path))) & set(common)
    assert used <= demanded(path)


@pytest.mark.parametrize("family", DEFINES)
def test_every_definition_is_used(family):
    text = "".join(code_of(path) for path in KERNELS)
    unused = {
        "LETTER_H",
        "NUMBER_INT64",
        "FORM_RATIO",
    }  # defined only so that their sets are complete
    for name in set(DEFINES[family]) - unused:
        assert re.search(rf"(?<!defined\()\b{name}\b", text), name


def test_records_are_laid_out_as_in_c():
    assert layout.STEP_BYTES == 5 * 4
    assert layout.MOMENTS_BYTES == 2 * 4
    offsets = [layout.SCAN.fields[name][1] for name in ("min_distance", "weights", "margins")]
    assert offsets == [32, 48, 120]
    assert layout.SCAN.fields["columns"][1] == 152
    assert layout.SCAN_BYTES == 160
    step = variants.Step(1, 2, 3, 4, 5)
    assert variants.step_table((step,)).tolist() == [[1, 2, 3, 4, 5]]


def test_codes_follow_their_tables():
    letters = sorted(PLANE_LETTERS, key=lambda x: DEFINES["bitgemm"][f"LETTER_{x.upper()}"])
    assert "".join(letters) == PLANE_LETTERS
    assert DEFINES["minplus"]["LARGEST_INT32"] == INFINITY_INT32
    assert DEFINES["minplus"]["LARGEST_INT64"] == INFINITY_INT64
    packed = DEFINES["epistasis"]["PARTS_OF_FIRST"], DEFINES["epistasis"]["PARTS_OF_SECOND"]
    for i, part in enumerate(layout.PARTS):
        for which, state in enumerate(part):
            assert packed[which] >> 2 * i & 3 == (3 if state == 2 else state)


@pytest.mark.parametrize(
    ("states", "joint", "parts"), [(2, 1, 2), (3, 1, 3), (2, 2, 8), (3, 2, 10)]
)
def test_segment_counts_equal_those_of_the_depths(states, joint, parts):
    assert scan_plan.operand_segments(states, joint) == 2 * parts
    if joint == 2:
        sizes, both = np.ones((4, 2, states), int), np.zeros((3, 2, 2, 2), int)
        depths = scan_plan.joint_depths(sizes, both)
        assert depths.shape[1] == 2 * parts


def test_compiler_options_of_a_file():
    options = layout.compiler_options("minplus/minplus", (("DEPTH", 8),))
    assert options[0] == "-std=c++17"
    assert "-DBOUND_TILE=128" in options
    assert options[-1] == "-DDEPTH=8"
    assert not any(option.startswith("-DTILE_ROWS") for option in options)
