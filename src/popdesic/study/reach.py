"""Find all code of the package that a script can reach.

The search starts at the script and follows names: it adds each top-level definition that the
reached code uses, as a syntax tree without comments, docstrings and positions. For every imported
module it adds the statements that run on import. Where a name cannot be traced to a definition, it
adds the whole module; where a string names a Python file, it adds that file.

A digest of whole imported modules would be shorter, and an edit would rerun more: 9.2 of the 60
scripts on average instead of 5.1, of a module of `engine` 28 instead of 10. An edit of the min-plus
product would rerun 25 scripts, distances among them, instead of the three that close paths.

Three kinds of item have rules of their own:

- Backend classes. `select_backend` reaches both classes, and each has the methods of all products.
  Only methods whose names the reached code uses are added, so that a tile of distances does not
  depend on the min-plus product.
- CUDA files. A file that a reached definition names (`"engine/minplus"`) is added without
  comments, with the headers that it includes.
- Libraries. If a reached definition uses a library whose version can change the bytes of results
  (`LIBRARIES`), that version is added.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from ..core.places import KERNEL_FOLDER
from .syntax import Imported, Member, Module

PACKAGE = Path(__file__).resolve().parents[1]
#: Classes of which only the methods in use are reached: file, class.
BACKENDS = (("engine/backend_cpu.py", "CpuBackend"), ("engine/backend_gpu.py", "GpuBackend"))
#: Imported module -> libraries whose version can change the bytes of results. Layouts, clusters,
#: eigenvectors and optimisers change from version to version, at least in the last digits, and
#: figures and the page are written by their library. numpy, pandas, numba and CuPy themselves are
#: not listed: sums of integers are exact, and floats are written with enough digits to be read back
#: unchanged.
LIBRARIES = {
    "jinja2": ("jinja2",),
    "matplotlib": ("matplotlib",),
    "scipy": ("scipy",),
    "sklearn": ("scikit-learn", "scipy"),
    "statsmodels": ("statsmodels", "scipy"),
}
#: Parts of numpy that are algorithms: LAPACK, streams of random numbers, transforms.
NUMPY_PARTS = {"linalg", "random", "fft"}

#: Functions that look up members by name, given as a string.
_BY_NAME = {"getattr", "attrgetter", "methodcaller"}
_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
_CUDA_TOKEN = re.compile(
    r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL
)


#: A piece of code or a library: ``("module", file)``, ``("name", file, name)``, …; see the
#: `_read_*` methods of `Code`.
Item = tuple


def version_of(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def digest_of_parts(parts: dict[str, str]) -> str:
    """A short digest of the texts that `Code.parts` returns."""
    text = "\n".join(f"{name}\t{parts[name]}" for name in sorted(parts))
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()


def plain_cuda(text: str) -> str:
    """A CUDA source without comments, empty lines and white space at the ends of lines."""

    def keep(found: re.Match) -> str:
        return found[0] if found[0][0] in "\"'" else " "

    lines = _CUDA_TOKEN.sub(keep, text).splitlines()
    return "\n".join(line.strip() for line in lines if line.strip())


class Method(NamedTuple):
    """A method of a backend, reached by calls whose numbers of arguments it accepts."""

    item: Item
    min_arguments: int = 0
    max_positional: float = math.inf

    def fits(self, arguments: tuple[int, int] | None) -> bool:
        if arguments is None:
            return True
        positional, keywords = arguments
        return positional <= self.max_positional and positional + keywords >= self.min_arguments


@dataclass
class CodeNode:
    """An item's text, the items that it uses and the members that it names.

    `methods` is filled for the classes of which only the methods in use are reached.
    """

    text: str = ""
    label: str = ""
    items: set[Item] = field(default_factory=set)
    members: set[Member] = field(default_factory=set)
    methods: dict[str, Method] = field(default_factory=dict)


class Code:
    """The graph of what uses what in a package. Each file is read once.

    Parameters
    ----------
    package : Path
        Folder of the package; modules imported from elsewhere count as libraries.
    kernels : Path
        Folder of the CUDA sources.
    backends : pairs of str
        File below `package` and class, as in `BACKENDS`.
    """

    def __init__(
        self,
        package: Path = PACKAGE,
        kernels: Path = KERNEL_FOLDER,
        backends: Iterable[tuple[str, str]] = BACKENDS,
    ):
        self.package, self.kernels = package, kernels
        self.sliced = {(package / path, name) for path, name in backends}
        self.nodes: dict[Item, CodeNode] = {}
        self.modules: dict[Path, Module] = {}

    def parts(self, starts: Iterable[Item], without: Iterable[Item] = ()) -> dict[str, str]:
        """Label and text of each item that `starts` reach without passing through `without`."""
        waiting, cut, seen = list(starts), set(without), set()
        used: dict[str, set] = {}
        methods: dict[str, list[Method]] = {}
        while waiting:
            item = waiting.pop()
            if item in seen or item in cut:
                continue
            seen.add(item)
            if item not in self.nodes:
                self.nodes[item] = getattr(self, f"_read_{item[0]}")(*item[1:])
                self.nodes[item].label = self._label(item)
            node = self.nodes[item]
            waiting += node.items
            for name, method in node.methods.items():
                methods.setdefault(name, []).append(method)
                waiting += [method.item for a in used.get(name, ()) if method.fits(a)]
            for _, name, arguments in node.members:
                used.setdefault(name, set()).add(arguments)
                waiting += [m.item for m in methods.get(name, ()) if m.fits(arguments)]
        nodes = map(self.nodes.__getitem__, seen)
        return {node.label: node.text for node in nodes if node.text}

    def _label(self, item: Item) -> str:
        return " ".join(self._place(w) if isinstance(w, Path) else w for w in item)

    def _place(self, path: Path) -> str:
        for root in (self.package, self.kernels):
            if path.is_relative_to(root):
                return path.relative_to(root).as_posix()
        return path.name

    def _module(self, path: Path) -> Module:
        if path not in self.modules:
            self.modules[path] = Module(path)
        return self.modules[path]

    # One method per kind of item.

    def _read_module(self, path: Path) -> CodeNode:
        """The whole module, as when it runs as a program."""
        module = self._module(path)
        return self._node(path, module.statements)

    def _read_import(self, path: Path) -> CodeNode:
        """The statements that run when a module is imported, without its definitions."""
        module = self._module(path)
        node = self._node(path, module.always)
        for imported in (one for some in module.imports.values() for one in some):
            node.items |= {("import", file) for file in self._files(path, imported)}
        packages = (folder / "__init__.py" for folder in path.parents)
        node.items |= {("import", p) for p in packages if self._inside(p) and p.is_file()}
        return node

    def _read_name(self, path: Path, name: str) -> CodeNode:
        """One name of a module: the statements that bind it, or what it is imported from."""
        module = self._module(path)
        statements = module.bindings.get(name, [])
        classes = [s for s in statements if hasattr(s, "bases")]
        if classes and (path, name) in self.sliced:
            return self._read_class(path, classes)
        node = self._node(path, statements)
        for imported in module.imports.get(name, ()):
            self._follow(node, path, imported)
        if not node.items - {("import", path)} and not statements:
            known = name.startswith("__") and name.endswith("__")  # __name__, __file__
            node.items.add(("import" if known else "module", path))
        return node

    def _read_class(self, path: Path, classes: list) -> CodeNode:
        """A class without its ordinary methods, which are added only when they are used."""
        rest, methods = [], {}
        for one in classes:
            rest += [*one.decorator_list, *one.bases, *one.keywords]
            for base in (base.id for base in one.bases if hasattr(base, "id")):
                self.sliced.add((path, base))
                for imported in self._module(path).imports.get(base, ()):
                    self.sliced |= {(f, imported.name) for f in self._files(path, imported)}
            for inner in one.body:
                name = getattr(inner, "name", "__")
                if name.startswith("__"):
                    rest.append(inner)
                else:
                    methods[name] = _method(inner, ("method", path, one.name, name))
        node = self._node(path, rest)
        node.methods = methods
        return node

    def _read_method(self, path: Path, owner: str, name: str) -> CodeNode:
        bodies = [s.body for s in self._module(path).bindings[owner] if hasattr(s, "bases")]
        return self._node(path, [s for b in bodies for s in b if getattr(s, "name", "") == name])

    def _read_file(self, path: Path) -> CodeNode:
        """A CUDA file and its headers; a .cu file without #include may be compiled with any."""
        text = path.read_text("utf-8", "replace")
        names = _INCLUDE.findall(text)
        folders = (path.parent, self.kernels)
        files = {(folder / name).resolve() for name in names for folder in folders}
        if not names and path.suffix == ".cu":
            files = {*self.kernels.glob("*.cuh"), *path.parent.glob("*.cuh")}
        return CodeNode(
            plain_cuda(text), items={("file", file) for file in files if file.is_file()}
        )

    def _read_library(self, distribution: str) -> CodeNode:
        return CodeNode(version_of(distribution))

    # From statements to the items that they use.

    def _node(self, path: Path, statements: list) -> CodeNode:
        """A node for some statements of a module and everything that they use."""
        module = self._module(path)
        part = module.part(statements)
        node = CodeNode(items={("import", path)})
        words: set[str] = set()
        if part.names & _BY_NAME:
            node.members |= {Member("", string) for string in part.strings}
        for name, member, arguments in [
            *((name, None, None) for name in part.names),
            *part.members,
        ]:
            meanings = part.imports.get(name, []) + module.imports.get(name, [])
            for imported in meanings:
                words |= self._follow(node, path, imported, member)
            if name in module.bindings:
                node.items.add(("name", path, name))
            if member and not meanings and name != "snakemake":
                node.members.add(Member("", member, arguments))
        for imported in part.imports.get("*", []) + module.imports.get("*", []):
            node.items |= {("module", file) for file in self._files(path, imported)}
        # `import a.b` binds only `a`: which names of `a.b` are used is unknown, so all are added
        for imported in part.imports.get("", []) + module.imports.get("", []):
            words |= self._follow(node, path, imported)
        for imported in (one for some in part.imports.values() for one in some):
            node.items |= {("import", file) for file in self._files(path, imported)}
        for string in part.strings:
            node.items |= set(self._named(path, string))
        if part.text:
            node.text = f"{part.text} | {' '.join(sorted(words))}"
        return node

    def _follow(
        self, node: CodeNode, path: Path, imported: Imported, member: str | None = None
    ) -> set[str]:
        """Add to a node what an import binds, or a member of it; return the names of what it is."""
        module, submodule = self._where(path, imported)
        if module is None and submodule is None:
            return self._follow_library(node, imported, member)
        if imported.name is None or submodule is not None:
            target = submodule or module
            if member is None:
                node.items.add(("module", target))
                return {self._place(target)}
            inner = _source(target.parent / member) if target.name == "__init__.py" else None
            node.items.add(("name", target, member) if inner is None else ("module", inner))
            return {f"{self._place(target)}:{member}"}
        node.items.add(("name", module, imported.name))
        if member:
            node.members.add(Member("", member))
        return {f"{self._place(module)}:{imported.name}"}

    def _follow_library(self, node: CodeNode, imported: Imported, member: str | None) -> set[str]:
        words = [w for w in (*imported.module.split("."), imported.name, member) if w]
        if words[0] == "numpy" and (len(words) == 1 or words[1] in NUMPY_PARTS):
            node.items.add(("library", "numpy"))
        node.items |= {("library", name) for name in LIBRARIES.get(words[0], ())}
        return {".".join(words)}

    def _files(self, path: Path, imported: Imported) -> list[Path]:
        """Files of the package that an import executes."""
        return [file for file in self._where(path, imported) if file is not None]

    def _where(self, path: Path, imported: Imported) -> tuple[Path | None, Path | None]:
        """Files of the imported module and, if the imported name is a submodule, of that."""
        name = imported.module.lstrip(".")
        dots, words = len(imported.module) - len(name), name.split(".") if name else []
        if dots:
            folder = path.parents[dots - 1]
        elif words and words[0] == self.package.name:
            folder, words = self.package, words[1:]
        else:
            return None, None
        target = folder.joinpath(*words)
        below = _source(target / imported.name) if imported.name and target.is_dir() else None
        return _source(target), below

    def _named(self, path: Path, string: str) -> Iterator[Item]:
        """Files that a string constant names: CUDA sources, and Python files to be executed."""
        if not string or len(string) > 100 or "\n" in string or string.startswith("/"):
            return
        if string.endswith(".py") and (path.parent / string).is_file():
            yield "module", path.parent / string
        for end in ("", ".cu"):
            if "/" in string and (file := self.kernels / f"{string}{end}").is_file():
                yield "file", file

    def _inside(self, path: Path) -> bool:
        return path.is_relative_to(self.package)


@functools.cache
def _source(target: Path) -> Path | None:
    """The Python file of a module or a package."""
    for file in (target.with_name(f"{target.name}.py"), target / "__init__.py"):
        if file.is_file():
            return file
    return None


def _method(function, item: Item) -> Method:
    """The numbers of arguments that a method accepts, as far as its definition shows them."""
    plain = {getattr(d, "id", "") for d in function.decorator_list} <= {"classmethod"}
    if not plain or not hasattr(function, "args"):
        return Method(item)
    given = function.args
    positional = [*given.posonlyargs, *given.args][1:]
    required = len(positional) - len(given.defaults)
    required += sum(default is None for default in given.kw_defaults)
    return Method(item, required, math.inf if given.vararg else len(positional))
