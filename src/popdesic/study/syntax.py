"""The top-level definitions of a Python file, each as text and with the names that it uses.

The text is the syntax tree without comments, docstrings and positions. Empty fields are left out,
so that the text does not change when a new Python version adds a field to a node.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

#: Decorators that only bind the definition's own name; any other may register it somewhere.
PLAIN_DECORATORS = {
    *("cache", "cached_property", "classmethod", "contextmanager", "dataclass", "final"),
    *("intrinsic", "jit", "lru_cache", "njit", "overload", "property", "staticmethod", "wrap"),
    *("wraps",),
}
#: Decorators with the same names that do register something: owner, name.
REGISTERING = {("extending", "overload"), ("numba", "overload")}
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DEFINITIONS = (*_FUNCTIONS, ast.ClassDef)
_IMPORTS = (ast.Import, ast.ImportFrom)


@dataclass(frozen=True)
class Imported:
    """What an import binds: a module (leading dots: a relative import), or one of its names."""

    module: str
    name: str | None = None


class Member(NamedTuple):
    """A use of `owner.name`; `owner` is "" if it is not a plain name.

    `arguments` are the numbers of positional and of keyword arguments of a call; None if the use is
    not a call, or the call has `*` or `**`.
    """

    owner: str
    name: str
    arguments: tuple[int, int] | None = None


@dataclass
class Part:
    """Statements of a module, and what they use.

    Attributes
    ----------
    text : str
        Their syntax trees.
    names : set of str
        Names used outside `owner.name`.
    members : set of Member
        Members used, of names and of other expressions.
    strings : set of str
        String constants, including the pieces of f-strings.
    imports : dict
        Local name → what it is bound to by imports inside the statements.
    """

    text: str = ""
    names: set[str] = field(default_factory=set)
    members: set[Member] = field(default_factory=set)
    strings: set[str] = field(default_factory=set)
    imports: dict[str, list[Imported]] = field(default_factory=dict)


class Module:
    """A Python file by its top-level definitions.

    Attributes
    ----------
    bindings : dict
        Name → statements that bind it.
    imports : dict
        Name → what it is imported from; `*` for the modules of `from module import *`.
    always : list of ast.stmt
        Statements that may do more on import than bind names of this module. Assertions are left
        out: they do not change results.
    main : list of ast.stmt
        Statements that run only if the file is started as a program.
    """

    def __init__(self, path: Path):
        self.path = path
        self.bindings: dict[str, list[ast.stmt]] = {}
        self.imports: dict[str, list[Imported]] = {}
        self.always: list[ast.stmt] = []
        self.main: list[ast.stmt] = []
        #: Whether annotations are not evaluated (`from __future__ import annotations`).
        self.lazy_annotations = False
        source = path.read_bytes()
        tree = ast.parse(source, str(path))
        #: Whether the file may have assignment expressions.
        self.walrus = b":=" in source
        for statement in tree.body:
            self._read(statement)
        #: All top-level statements except imports and docstrings.
        self.statements = [s for s in tree.body if not (isinstance(s, _IMPORTS) or _is_constant(s))]

    def part(self, statements: Iterable[ast.stmt]) -> Part:
        return _Writer(self.lazy_annotations).write(statements)

    def _read(self, statement: ast.stmt) -> None:
        if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
            self.lazy_annotations |= any(a.name == "annotations" for a in statement.names)
        elif isinstance(statement, _IMPORTS):
            _add_imports(self.imports, statement)
        elif _is_constant(statement) or isinstance(statement, ast.Assert):
            pass
        elif _is_test_of(statement, "TYPE_CHECKING"):
            for inner in statement.orelse:
                self._read(inner)
        elif _is_test_of(statement, "__name__"):
            self.main.append(statement)
        else:
            for inner in _unfold(statement):
                if isinstance(inner, _IMPORTS):
                    _add_imports(self.imports, inner)
                for name in bound(inner, self.walrus):
                    self.bindings.setdefault(name, []).append(statement)
            if not self._only_binds(statement):
                self.always.append(statement)

    def _only_binds(self, statement: ast.stmt) -> bool:
        """Whether a statement does nothing but bind names of this module."""
        if isinstance(statement, _DEFINITIONS):
            return all(map(_is_plain, statement.decorator_list))
        if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            # `TABLE[key] = value` and `LIST += [...]` may change an object of another module.
            return not bound(statement) & self.imports.keys() and "*" not in self.imports
        if isinstance(statement, (ast.If, ast.Try)):
            calls = (ast.Call, ast.NamedExpr)
            if any(isinstance(n, calls) for n in ast.walk(getattr(statement, "test", ast.Pass()))):
                return False
            return all(
                isinstance(inner, (*_IMPORTS, ast.Pass)) or self._only_binds(inner)
                for inner in _children(statement)
            )
        return _is_constant(statement)


def _is_constant(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _is_test_of(statement: ast.stmt, name: str) -> bool:
    """Whether this is `if NAME:` or `if NAME == ...:`."""
    if not isinstance(statement, ast.If):
        return False
    test = statement.test.left if isinstance(statement.test, ast.Compare) else statement.test
    return (isinstance(test, ast.Name) and test.id == name) or (
        isinstance(test, ast.Attribute) and test.attr == name
    )


def _is_plain(decorator: ast.expr) -> bool:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    if isinstance(called, ast.Name):
        return called.id in PLAIN_DECORATORS - {"overload"}
    if not isinstance(called, ast.Attribute):
        return False
    owner = getattr(called.value, "attr", getattr(called.value, "id", ""))
    return called.attr in PLAIN_DECORATORS and (owner, called.attr) not in REGISTERING


def _children(statement: ast.stmt) -> Iterator[ast.stmt]:
    for name in ("body", "orelse", "finalbody"):
        yield from getattr(statement, name, [])
    for handler in getattr(statement, "handlers", []):
        yield from handler.body
    for case in getattr(statement, "cases", []):
        yield from case.body


def _unfold(statement: ast.stmt) -> Iterator[ast.stmt]:
    """A statement and the statements inside it, except the bodies of definitions."""
    yield statement
    if not isinstance(statement, _DEFINITIONS):
        for inner in _children(statement):
            yield from _unfold(inner)


def bound(statement: ast.stmt, walrus: bool = False) -> set[str]:
    """Names that a single statement binds, or whose value it changes.

    With `walrus`, names bound by `:=` inside it are included.
    """
    if isinstance(statement, _DEFINITIONS):
        return {statement.name}
    targets = list(getattr(statement, "targets", []))
    if walrus:
        targets += [node.target for node in ast.walk(statement) if isinstance(node, ast.NamedExpr)]
    targets += [statement.target] if hasattr(statement, "target") else []
    targets += [item.optional_vars for item in getattr(statement, "items", [])]
    found = set()
    while targets:
        target = targets.pop()
        if isinstance(target, ast.Name):
            found.add(target.id)
        elif isinstance(target, (ast.Tuple, ast.List)):
            targets += target.elts
        elif isinstance(target, (ast.Starred, ast.Subscript, ast.Attribute)):
            targets.append(target.value)
    return found


def _add_imports(found: dict[str, list[Imported]], node: ast.Import | ast.ImportFrom) -> None:
    if isinstance(node, ast.Import):
        for alias in node.names:
            top = alias.name.split(".")[0]
            module = alias.name if alias.asname else top
            found.setdefault(alias.asname or top, []).append(Imported(module))
            if module != alias.name:  # `import a.b` binds a, and executes a.b
                found.setdefault("", []).append(Imported(alias.name))
    else:
        module = "." * node.level + (node.module or "")
        for alias in node.names:
            name = alias.asname or alias.name
            found.setdefault(name, []).append(Imported(module, alias.name))


def _count_arguments(call: ast.Call) -> tuple[int, int] | None:
    if any(isinstance(a, ast.Starred) for a in call.args) or not all(k.arg for k in call.keywords):
        return None
    return len(call.args), len(call.keywords)


class _Writer:
    """Writes statements as text and collects what they use in one pass."""

    def __init__(self, lazy_annotations: bool):
        self.lazy = lazy_annotations
        self.out: list[str] = []
        self.part = Part()

    def write(self, statements: Iterable[ast.stmt]) -> Part:
        for statement in statements:
            self._visit(statement)
        self.part.text = " ".join(self.out)
        return self.part

    def _visit(self, node: ast.AST) -> None:
        kind = node.__class__
        part, out = self.part, self.out
        if kind is ast.Name:
            part.names.add(node.id)
            out.append(node.id)
            return
        if kind is ast.Constant:
            if node.value.__class__ is str:
                part.strings.add(node.value)
            out.append(repr(node.value))
            return
        out.append(f"({kind.__name__}")
        if kind is ast.Attribute:
            self._visit_member(node, None)
        else:
            if kind in _IMPORTS:
                _add_imports(part.imports, node)
            for name in node._fields:
                if name == "ctx":
                    continue
                value = getattr(node, name, None)
                if value is None or value == []:
                    continue
                out.append(f"{name}=")
                if self.lazy and name in ("annotation", "returns"):
                    self._only_text(value)
                elif value.__class__ is list:
                    if name == "body" and kind in _DEFINITIONS and _is_constant(value[0]):
                        value = value[1:]
                    out.append("[")
                    for item in value:
                        if isinstance(item, ast.AST):
                            self._visit(item)
                        else:
                            out.append(repr(item))
                    out.append("]")
                elif kind is ast.Call and value.__class__ is ast.Attribute:
                    self._visit_member(value, _count_arguments(node))
                elif isinstance(value, ast.AST):
                    self._visit(value)
                else:
                    out.append(repr(value))
        out.append(")")

    def _visit_member(self, node: ast.Attribute, arguments: tuple[int, int] | None) -> None:
        plain = node.value.__class__ is ast.Name
        self.part.members.add(Member(node.value.id if plain else "", node.attr, arguments))
        self.out.append(f".{node.attr}")
        if plain:
            self.out.append(node.value.id)
        else:
            self._visit(node.value)

    def _only_text(self, node: ast.AST) -> None:
        kept, self.part = self.part, Part()
        self._visit(node)
        self.part = kept
