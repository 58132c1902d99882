"""Constants shared by Python and CUDA are written once: in Python, passed to the compiler as -D."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import numpy as np
import pytest
from support.launches import HOPPER, scan_shape
from support.sources import SOURCES, stated

from popdesic.core.places import KERNEL_FOLDER
from popdesic.engine import layout, tune_plan, variants
from popdesic.engine.layout import Pass
from popdesic.engine.minplus import INFINITY_INT32, INFINITY_INT64
from popdesic.engine.terms import PLANE_LETTERS
from popdesic.epistasis import layout as scan_layout
from popdesic.epistasis import scan_plan

KERNELS = sorted([*KERNEL_FOLDER.rglob("*.cu"), *KERNEL_FOLDER.rglob("*.cuh")])
PACKAGE = Path(layout.__file__).parents[1]


def name_of(path: Path) -> str:
    return str(path.relative_to(KERNEL_FOLDER))


def launch_defines() -> set[str]:
    """Names that launches define in addition to the common ones."""
    names = set(scan_plan.scan_defines(split_cells=0, states=2))
    for core in scan_plan.CORES.values():
        names |= set(scan_shape(core, order=3, states=2).defines)
    for variant in tune_plan.variants_to_measure(HOPPER):
        names |= {name for name, _ in variants.defines_of(variant, Pass((), (1, 1, 1)), True)}
    return names


DEFINED = launch_defines() | {name for one in SOURCES.values() for name, _ in one.defines}


@functools.cache
def constants_of_python() -> set[str]:
    """Upper-case names assigned in the modules that launch kernels."""
    names = set()
    launching = [*PACKAGE.rglob("*_gpu.py"), *PACKAGE.rglob("*_plan.py")]
    shared = [PACKAGE / f"engine/{name}.py" for name in ("layout", "variants", "devices")]
    shared += [PACKAGE / f"{module.replace('.', '/')}.py" for module, _ in stated()]
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
    path = KERNEL_FOLDER / "engine" / "rare_sites.cu"
    assert {"LEVELS": "14", "LIST": "8192"}.items() <= constants_of_cuda(path).items()
    assert {"TILE_ROWS", "EMIT_STAGES", "CANDIDATES"} <= constants_of_python()
    assert {"STAGES", "LAUNCH_SHARED", "SEGMENTS", "TILE_SITES"} <= DEFINED


def with_headers(path: Path) -> set[Path]:
    """A kernel file and the headers that it includes."""
    found = {path}
    for other in re.findall(r'^#include "([^"]+)"', path.read_text(), re.MULTILINE):
        found |= with_headers((path.parent / other).resolve())
    return found


def path_of(file: str) -> Path:
    return (KERNEL_FOLDER / f"{file}.cu").resolve()


def test_every_header_is_included():
    included = set().union(*(with_headers(path_of(file)) for file in SOURCES))
    assert included == {path.resolve() for path in KERNELS}


@pytest.mark.parametrize("file", SOURCES)
def test_files_do_not_compile_without_their_definitions(file):
    """A file, or a header that it includes, checks for every constant of its source."""
    texts = [path.read_text() for path in with_headers(path_of(file))]
    demanded = {name for text in texts for name in re.findall(r"!defined\((\w+)\)", text)}
    used = {
        name
        for path in with_headers(path_of(file))
        for name in re.findall(r"\b[A-Z][A-Z_0-9]+\b", code_of(path))
    }
    assert used & {name for name, _ in SOURCES[file].defines} <= demanded


@pytest.mark.parametrize("file", SOURCES)
def test_every_definition_is_used(file):
    """By the file, or by another one of its room that shares its definitions."""
    # defined only so that their sets are complete
    complete = {"LETTER_H", "NUMBER_INT64", "FORM_ROOT", "FORM_RATIO", "FORM_SHARES", "FORM_POINTS"}
    mine = {name for name, _ in SOURCES[file].defines} - complete
    sharing = [other for other, one in SOURCES.items() if mine <= {name for name, _ in one.defines}]
    text = "".join(code_of(path) for other in sharing for path in with_headers(path_of(other)))
    for name in mine:
        assert re.search(rf"(?<!defined\()\b{name}\b", text), name


def test_every_kernel_file_is_stated_once_in_its_room():
    files = sorted(
        str(p.relative_to(KERNEL_FOLDER).with_suffix("")) for p in KERNELS if p.suffix == ".cu"
    )
    assert sorted(file for _, file in stated()) == files == sorted(SOURCES)
    for module, file in stated():
        assert module.split(".")[0] == file.split("/")[0]


def launching() -> dict[str, list[ast.Call]]:
    """Calls by which the rooms' modules load kernels: `load_function` and methods around it."""
    return {
        str(path.relative_to(PACKAGE)): [
            node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)
        ]
        for path in PACKAGE.rglob("*_gpu.py")
    }


def test_every_kernel_name_is_a_literal():
    """A search for the name of a kernel finds the line of its room that launches it."""
    names = re.compile(r'extern "C" __global__ void[^{;]*?(\w+)\((?=[^()]*\)\s*\{)')
    for path in KERNELS:
        room = PACKAGE / path.relative_to(KERNEL_FOLDER).parts[0]
        modules = [*room.glob("*_gpu.py"), room / "variants.py"]
        text = "".join(one.read_text() for one in modules if one.exists())
        for name in names.findall(path.read_text()):
            assert f'"{name}"' in text, f"{path.name}: {name}"


def test_no_kernel_name_is_built():
    for path, calls in launching().items():
        for call in calls:
            if ast.unparse(call.func).split(".")[-1] in ("load_function", "load", "_load", "run"):
                assert not [a for a in call.args if isinstance(a, ast.JoinedStr)], path


def test_records_are_laid_out_as_in_c():
    assert layout.STEP_BYTES == 5 * 4
    assert variants.MOMENTS_BYTES == 2 * 4
    offsets = [scan_layout.SCAN.fields[name][1] for name in ("min_distance", "weights", "margins")]
    assert offsets == [32, 48, 120]
    assert scan_layout.SCAN.fields["columns"][1] == 152
    assert scan_layout.SCAN.fields["table_words"][1] == 184
    assert scan_layout.SCAN_BYTES == 192
    assert scan_layout.LIMIT.itemsize == 24
    assert scan_layout.OF_W.itemsize == 16
    step = variants.Step(1, 2, 3, 4, 5)
    assert variants.step_table((step,)).tolist() == [[1, 2, 3, 4, 5]]


def test_codes_follow_their_tables():
    packing, products = (
        dict(SOURCES[f"engine/{name}"].defines) for name in ("pack_finish", "minplus")
    )
    letters = sorted(PLANE_LETTERS, key=lambda x: packing[f"LETTER_{x.upper()}"])
    assert "".join(letters) == PLANE_LETTERS
    assert products["LARGEST_INT32"] == INFINITY_INT32
    assert products["LARGEST_INT64"] == INFINITY_INT64
    scan = dict(scan_layout.COMPACT_SCORE.defines)
    packed = scan["PARTS_OF_FIRST"], scan["PARTS_OF_SECOND"]
    for i, part in enumerate(scan_layout.PARTS):
        for which, state in enumerate(part):
            assert packed[which] >> 2 * i & 3 == (3 if state == 2 else state)


@pytest.mark.parametrize(
    ("states", "joint", "parts"), [(2, 1, 2), (3, 1, 3), (2, 2, 8), (3, 2, 10)]
)
def test_segment_counts_equal_those_of_the_depths(states, joint, parts):
    assert scan_plan.operand_segments(states, joint) == 2 * parts
    if joint == 2:
        sizes, both = np.ones((4, 2, states), int), np.zeros((3, 2, 2, 2), int)
        depths = scan_plan.shared_depths(sizes, both)
        assert depths.shape[1] == 2 * parts


def test_compiler_options_of_a_file():
    options = SOURCES["engine/minplus"].options((("DEPTH", 8),))
    assert options[0] == "-std=c++17"
    assert "-DBOUND_TILE=128" in options
    assert options[-1] == "-DDEPTH=8"
    assert not any(option.startswith("-DTILE_ROWS") for option in options)
