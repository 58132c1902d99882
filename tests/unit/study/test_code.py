"""Digests of code, tested on small packages: what takes part and what does not."""

from __future__ import annotations

import importlib.metadata
import json
import shutil
from pathlib import Path

import pytest

from popdesic.core.places import KERNEL_FOLDER
from popdesic.study import code
from popdesic.study.code import CLOSURE_MODULES, SCRIPTS, TILE_WORK, tile_items
from popdesic.study.reach import BACKENDS, PACKAGE, Code, digest_of_parts, plain_cuda

SCRIPT = "from pack.a import f\nf()\n"


class Package:
    """A package `pack`, a script and kernels, written from text."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.write(pack___init__="", script=SCRIPT)

    def write(self, **files: str) -> None:
        """`pack_a="…"` writes pack/a.py: the first `_` stands for a slash."""
        for name, text in files.items():
            place = name.replace("pack_", "pack/", 1) if name.startswith("pack_") else name
            path = self.folder / f"{place}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def kernel(self, name: str, text: str) -> None:
        path = self.folder / "kernels" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def parts(self, backends: tuple = ()) -> dict[str, str]:
        found = Code(self.folder / "pack", self.folder / "kernels", backends)
        return found.parts([("module", self.folder / "script.py")])

    def digest(self, backends: tuple = ()) -> str:
        return digest_of_parts(self.parts(backends))


@pytest.fixture
def pack(tmp_path) -> Package:
    return Package(tmp_path)


def differs(pack: Package, **files: str) -> bool:
    before = pack.digest()
    pack.write(**files)
    return pack.digest() != before


def test_names_are_followed_through_modules(pack):
    pack.write(
        pack_a="from .b import g\nX = 1\ndef f():\n    return g() + X\ndef o():\n    return 0\n",
        pack_b="def g():\n    return h()\ndef h():\n    return 2\ndef unused():\n    return 3\n",
    )
    assert {label for label in pack.parts() if label.startswith("name")} == {
        *("name a.py f", "name a.py X", "name b.py g", "name b.py h"),
    }


@pytest.mark.parametrize(
    "text",
    [
        "def f():\n    return 2\n",
        "def f(x=1):\n    return 1\n",
        "@cache\ndef f():\n    return 1\n",
        "def f() -> int:\n    return 1\n",
        "def f():\n    return 1\nf = 3\n",
        "def f():\n    return 1\nif True:\n    f = 4\n",
    ],
)
def test_a_change_in_used_code_changes_the_digest(pack, text):
    pack.write(pack_a="def f():\n    return 1\n")
    assert differs(pack, pack_a=text)


@pytest.mark.parametrize(
    "text",
    [
        "def f():\n    return 1  # a remark\n",
        "def f():\n    'Another docstring.'\n\n    return 1\n",
        "'A docstring.'\nimport os\ndef f():\n    return (1)\n",
        "def f():\n    return 1\ndef g():\n    return 2\nX = 3\nassert X\n",
        "def f():\n    return 1\nif __name__ == '__main__':\n    f()\n",
    ],
)
def test_comments_and_unused_code_keep_the_digest(pack, text):
    pack.write(pack_a="def f():\n    'Docstring.'\n    return 1\n")
    assert not differs(pack, pack_a=text)


@pytest.mark.parametrize(
    "text",
    [
        "import pack.b\ndef f():\n    return pack.b.g()\n",
        "from pack import b\ndef f():\n    return b.g()\n",
        "from . import b as kernel\ndef f():\n    return kernel.g()\n",
        "from . import b\ndef f():\n    return getattr(b, 'g')()\n",
        "from .b import *\ndef f():\n    return g()\n",
        "from .c import g\ndef f():\n    return g()\n",
        "def f():\n    from .b import g as h\n    return h()\n",
        "def f():\n    if True:\n        from . import b\n    return [b.g() for _ in 'a']\n",
        "class C:\n    def m(self):\n        from .b import g\n        return g()\nf = C().m\n",
        "def f():\n    def inner():\n        from .b import A\n        return A().m()\n"
        "    return inner()\n",
        "from .b import g\nTABLE = {'a': g}\ndef f():\n    return TABLE['a']()\n",
        "from .b import g\nclass A:\n    m = g\ndef f():\n    return A.m()\n",
        "from .b import A\ndef f():\n    return A().m()\n",
        "try:\n    from .b import g\nexcept ImportError:\n    g = None\ndef f():\n    return g()\n",
        "from .d import thing\ndef f():\n    return thing()\n",
        "import subprocess\ndef f():\n    return subprocess.run(['python', 'b.py'])\n",
        "from . import b\nX = []\nX += [b.g()]\ndef f():\n    return X\n",
        "from .b import g\nX = {}\nX['g'] = g\ndef f():\n    return X\n",
        "f = lambda: 1\nfrom .b import g\nf.g = g\n",
    ],
)
def test_every_way_of_importing_is_followed(pack, text):
    """However a function is imported, a change in it changes the digest."""
    b = "def g():\n    return {}\nclass A:\n    def m(self):\n        return g()\n"
    c = "from .b import g\n"
    # unresolved: `__getattr__` may return anything in the module
    d = "from .b import g\ndef __getattr__(name):\n    return g\n"
    pack.write(pack_a=text, pack_b=b.format(1), pack_c=c, pack_d=d)
    assert differs(pack, pack_b=b.format(2))


@pytest.mark.parametrize(
    "text",
    [
        "import warnings\nwarnings.simplefilter('ignore')\n",
        "import numpy\nnumpy.x = 1\n",
        "for x in (1, 2):\n    print(x)\n",
        "@register\ndef h():\n    return 1\n",
        "from numba.extending import overload\n@overload(len)\ndef h():\n    return 1\n",
        "if set_up():\n    X = 1\n",
    ],
)
def test_statements_of_imported_modules_take_part(pack, text):
    """Even if nothing of the module is used, because importing it runs them."""
    pack.write(pack_a="from . import b\ndef f():\n    return 1\n", pack_b="def g():\n    pass\n")
    assert differs(pack, pack_b=text)
    pack.write(pack_b="def g():\n    pass\n")
    assert differs(pack, pack___init__=text)


def test_postponed_annotations_take_no_part(pack):
    text = "from __future__ import annotations\nfrom .b import G\ndef f(x: G) -> G:\n    return x\n"
    pack.write(pack_a=text, pack_b="class G:\n    x = 1\n")
    assert not differs(pack, pack_b="class G:\n    x = 2\n")
    assert differs(pack, pack_a=text.replace("from __future__ import annotations\n", ""))


BACKEND = """\
from .b import gemm, plus
class Gpu(Base):
    name = "gpu"
    def __init__(self):
        self.x = 1
    def bitgemm(self, a, b):
        return self.tile(gemm(a, b))
    def tile(self, c):
        return c
    def minplus(self, c, *, bounds=None):
        return plus(c)
    def transpose(self, source, target):
        return 3
    def scan(self):
        return 4
"""


def use(pack: Package, body: str) -> set[str]:
    """Methods of a backend that take part if a function has this body."""
    pack.write(
        pack_a=f"from .gpu import Gpu\ndef f(x=None):\n    backend = Gpu()\n    {body}\n",
        pack_gpu=BACKEND,
        pack_b="def gemm(a, b):\n    return 1\ndef plus(c):\n    return 2\n",
    )
    labels = pack.parts((("gpu.py", "Gpu"),))
    assert ("name b.py gemm" in labels) == ("method gpu.py Gpu bitgemm" in labels)
    assert ("name b.py plus" in labels) == ("method gpu.py Gpu minplus" in labels)
    return {label.split()[-1] for label in labels if label.startswith("method")}


@pytest.mark.parametrize(
    ("body", "methods"),
    [
        ("return 1", set()),
        ("return backend.bitgemm(x, x)", {"bitgemm", "tile"}),
        ("return backend.minplus(x, bounds=1)", {"minplus"}),
        ("return x.run(backend.minplus)", {"minplus"}),
        ("return backend.minplus(*x)", {"minplus"}),
        ("return getattr(backend, 'scan')()", {"scan"}),
        ("return backend.transpose(x, x)", {"transpose"}),
        # numpy's method of the same name has three parameters
        ("return x.transpose(1, 2, 0)", set()),
    ],
)
def test_only_used_methods_of_backends_take_part(pack, body, methods):
    assert use(pack, body) == methods


def test_the_rest_of_a_backend_takes_part(pack):
    use(pack, "return 1")
    before = pack.digest((("gpu.py", "Gpu"),))
    pack.write(pack_gpu=BACKEND.replace("self.x = 1", "self.x = 2"))
    assert pack.digest((("gpu.py", "Gpu"),)) != before


def test_kernels_named_in_code_take_part(pack):
    pack.write(
        pack_a="from .b import load\ndef f():\n    return load('plus/plus')\n", pack_b="load = 1"
    )
    pack.kernel("plus/plus.cu", '#include "../common.cuh"\n#include "tile.cuh"\nint x;\n')
    pack.kernel("plus/tile.cuh", "int tile;\n")
    pack.kernel("plus/unused.cuh", "int unused;\n")
    pack.kernel("common.cuh", "int c;\n")
    pack.kernel("gemm/gemm.cu", "int y;\n")
    files = {label for label in pack.parts() if label.startswith("file")}
    assert files == {"file plus/plus.cu", "file plus/tile.cuh", "file common.cuh"}
    before = pack.digest()
    pack.kernel("gemm/gemm.cu", "int z;\n")
    pack.kernel("plus/tile.cuh", "/* a\nremark */int tile; // one more\n\n")
    assert pack.digest() == before
    pack.kernel("common.cuh", "int d;\n")
    assert pack.digest() != before


def test_all_headers_take_part_for_a_kernel_without_includes(pack):
    pack.write(pack_a="def f():\n    return 'plus/plus'\n")
    pack.kernel("plus/plus.cu", "int x;\n")
    pack.kernel("plus/tile.cuh", "int tile;\n")
    pack.kernel("common.cuh", "int c;\n")
    assert {"file plus/tile.cuh", "file common.cuh"} <= pack.parts().keys()


def test_comments_in_cuda_keep_the_digest():
    text = 'int a; // b\n/* c\n d */\n  "// e /* f */" \'"\' // g\n\n'
    assert plain_cuda(text) == 'int a;\n"// e /* f */" \'"\''


@pytest.mark.parametrize(
    ("text", "libraries"),
    [
        ("import numpy as np\ndef f():\n    return np.zeros(3)\n", set()),
        ("import numpy as np\ndef f():\n    return np.linalg.eigh(3)\n", {"numpy"}),
        ("from numpy.random import default_rng\ndef f():\n    return default_rng(1)\n", {"numpy"}),
        ("import numpy as np\ndef f():\n    return run(np)\n", {"numpy"}),
        ("def f():\n    from scipy import stats\n    return stats.norm\n", {"scipy"}),
        ("import pandas as pd\nimport scipy\ndef f():\n    return pd.NA\n", set()),
    ],
)
def test_libraries_that_decide_bytes(pack, text, libraries):
    pack.write(pack_a=text)
    found = {label.split()[1] for label in pack.parts() if label.startswith("library")}
    assert found == libraries


def test_imports_inside_functions_count_where_the_function_is_used(pack):
    """As code of the function: a rule that does not call it depends on neither its code nor scipy.

    Slow libraries are imported that way (tests/unit/test_imports.py).
    """
    lazy = "def g():\n    from scipy import stats\n    from .c import h\n    return stats, h\n"
    pack.write(
        pack_a="from . import b\ndef f():\n    return b.plain()\n",
        pack_b=f"def plain():\n    return 1\n{lazy}",
        pack_c="def h():\n    return 1\n",
    )
    assert "library scipy" not in pack.parts()
    assert not differs(pack, pack_c="def h():\n    return 2\n")
    pack.write(pack_a="from . import b\ndef f():\n    return b.g()\n")
    assert "library scipy" in pack.parts()
    assert differs(pack, pack_c="def h():\n    return 3\n")


def test_another_library_version_changes_the_digest(pack, monkeypatch):
    pack.write(pack_a="import sklearn\ndef f():\n    return sklearn.manifold\n")
    before = pack.digest()
    version = importlib.metadata.version
    monkeypatch.setattr(
        importlib.metadata, "version", lambda n: "0.0" if n == "scipy" else version(n)
    )
    assert pack.digest() != before


@pytest.fixture
def caches(tmp_path, monkeypatch):
    """Empty caches of a study and of its user; every part of the code is the text `code`."""

    class Plain:
        def parts(self, starts: list, cut: list) -> dict[str, str]:
            return {str(item): "code" for item in [*starts, *cut]}

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(code, "_code", Plain)
    code._read_cache.cache_clear()
    yield
    code._read_cache.cache_clear()


def test_a_first_run_reads_the_digests_that_the_set_up_left(caches):
    assert code.share_digests() == len(list(SCRIPTS.rglob("*.py"))) + 1 + len(TILE_WORK)
    kept = json.loads(code.shared_cache().read_text())
    assert kept["digests"]["compute_pca"] == code.code_of("compute_pca")
    assert kept["digests"][""] == code.closure_code()
    for state, expected in ((kept["state"], "kept"), ("other code", code.code_of("compute_pca"))):
        about = {"state": state, "digests": {"compute_pca": "kept"}}
        code.shared_cache().write_text(json.dumps(about))
        code._read_cache.cache_clear()
        assert code.code_of("compute_pca") == expected


def test_a_copy_of_the_code_reads_the_same_digests(tmp_path, monkeypatch):
    shared = code._state()
    kernels = Path(shutil.copytree(code.KERNEL_FOLDER, tmp_path / "copy/kernels"))
    monkeypatch.setattr(code, "KERNEL_FOLDER", kernels)
    assert code._state() == shared
    source = min(kernels.rglob("*.cu"))
    source.rename(source.with_name("renamed.cu"))
    assert code._state() != shared


def test_digests_of_the_study_come_before_those_of_the_user(caches):
    code.share_digests()
    about = json.loads(code.shared_cache().read_text()) | {"digests": {"compute_pca": "own"}}
    code.CACHE.parent.mkdir()
    code.CACHE.write_text(json.dumps(about))
    code._read_cache.cache_clear()
    assert code.code_of("compute_pca") == "own"
    code.code_of("define_axes")
    assert json.loads(code.CACHE.read_text())["digests"].keys() == {"compute_pca", "define_axes"}


# The real package.


@pytest.fixture(scope="module")
def own() -> dict[str, dict[str, str]]:
    """The parts that each script of the workflow reaches."""
    found = Code()
    return {p.stem: found.parts([("module", p)]) for p in sorted(SCRIPTS.rglob("*.py"))}


def kernels_of(parts: dict[str, str]) -> set[str]:
    return {label.split()[1] for label in parts if label.startswith("file") and ".cu" in label}


def sources(parts: dict[str, str]) -> set[str]:
    return {name for name in kernels_of(parts) if name.endswith(".cu")}


def test_min_plus_and_bitgemm_have_separate_digests(own):
    tile, closure = Code().parts(tile_items("dense")), own["close_paths"]
    assert sources(closure) == {"engine/minplus.cu"}
    kernels = ("bitgemm_wgmma", "bitgemm_mma", "bitgemm_popc", "pack_finish", "rare_sites")
    assert sources(tile) == {f"engine/{name}.cu" for name in kernels}
    assert "name engine/minplus_cpu.py block_kernel" in closure
    assert not [label for label in tile if "minplus" in label]
    bitgemm = [label.split()[-1] for label in closure if "bitgemm" in label]
    assert not [name for name in bitgemm if not name.isupper()]  # for sizes that the log prints


def test_every_kernel_is_part_of_a_digest(own):
    """A kernel name that is built from pieces would be missed. `popdesic impute` is no job."""
    command = Code().parts([("name", PACKAGE / "__main__.py", "impute")])
    reached = set().union(*map(kernels_of, [*own.values(), command]))
    files = {p.relative_to(KERNEL_FOLDER).as_posix() for p in KERNEL_FOLDER.rglob("*.cu*")}
    assert reached == files


def test_jobs_that_use_no_device_depend_on_no_kernel(own):
    for script in ("ingest_cohort", "encode_cohort", "write_report"):
        assert not kernels_of(own[script]), script
    # the panel is pruned on the CPU, by a function that has a kernel for other callers
    assert sources(own["build_panel"]) == {"engine/band.cu"}


def test_scores_depend_on_the_products_of_the_axes(own):
    found = sources(own["compute_pca"])
    assert found <= sources(own["define_axes"])
    assert found == {f"engine/{name}.cu" for name in ("code_sums", "genotype_passes", "columns")}


def test_maps_depend_on_the_optimiser(own):
    for name in ("_move_points", "_spread_points"):
        assert f"name maps/umap_epoch_cpu.py {name}" in own["compute_maps"]
    assert sources(own["compute_maps"]) == {"maps/epoch.cu", "maps/density.cu"}


def test_the_digest_of_a_script_includes_its_function(own):
    """No digest covers only the script itself."""
    for script, parts in own.items():
        assert sum(label.startswith("name") for label in parts) > 5, script


def test_code_that_decides_closures():
    starts = [("module", PACKAGE / path) for path in CLOSURE_MODULES]
    starts += [("name", PACKAGE / path, name) for path, name in BACKENDS]
    parts = Code().parts(starts)
    assert sources(parts) == {"engine/minplus.cu"}
    assert "method engine/backend_cpu.py CpuBackend minplus" in parts
    assert "method engine/backend_gpu.py GpuBackend minplus" in parts
    assert not [label for label in parts if "bitgemm" in label]
    assert code.closure_code() == digest_of_parts(parts)
