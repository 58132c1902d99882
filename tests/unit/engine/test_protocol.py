"""Every backend implements the whole protocol, and callers use nothing else (no CuPy needed)."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[3] / "src" / "popdesic"
#: Protocols, and the classes of a CPU and of a GPU: files of the engine, names.
PROTOCOLS = {
    ("backend.py", "Backend"): (("backend_cpu.py", "CpuBackend"), ("backend_gpu.py", "GpuBackend")),
    ("minplus.py", "MinPlus"): (("minplus_cpu.py", "CpuMinPlus"), ("backend_gpu.py", "GpuMinPlus")),
}
BACKENDS = PROTOCOLS["backend.py", "Backend"]
#: All modules outside the backends, except the command line and its rehearsal, which tune a GPU.
CALLERS = sorted(
    path
    for path in PACKAGE.rglob("*.py")
    if not path.stem.endswith(("_cpu", "_gpu")) and path.name not in ("__main__.py", "rehearsal.py")
)


def class_of(path: str, name: str) -> ast.ClassDef:
    tree = ast.parse((PACKAGE / "engine" / path).read_text())
    return next(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == name)


def methods(of: ast.ClassDef) -> dict[str, ast.FunctionDef]:
    return {node.name: node for node in of.body if isinstance(node, ast.FunctionDef)}


def signature(method: ast.FunctionDef) -> str:
    """Names, kinds and defaults of the parameters."""
    arguments = method.args
    for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        one.annotation = None
    return ast.unparse(arguments)


PROTOCOL = class_of("backend.py", "Backend")
ATTRIBUTES = {n.target.id for n in PROTOCOL.body if isinstance(n, ast.AnnAssign)}


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda names: names[1])
def test_every_class_has_every_method(protocol):
    for name, method in methods(class_of(*protocol)).items():
        assert ast.get_docstring(method), "the protocol says what a method does"
        for one in PROTOCOLS[protocol]:
            own = methods(class_of(*one))
            assert name in own, f"{one} lacks {name}"
            assert signature(own[name]) == signature(method), f"{one}.{name}"


@pytest.mark.parametrize("name", [one for some in PROTOCOLS.values() for one in some])
def test_no_method_only_raises(name):
    for method in methods(class_of(*name)).values():
        assert not isinstance(method.body[-1], ast.Raise) or len(method.body) > 2, method.name


@pytest.mark.parametrize("name", BACKENDS)
def test_every_backend_has_every_attribute(name):
    stored = {
        node.attr if isinstance(node, ast.Attribute) else node.id
        for node in ast.walk(class_of(*name))
        if isinstance(node, ast.Attribute | ast.Name) and isinstance(node.ctx, ast.Store)
    }
    assert stored >= ATTRIBUTES


def asked_of_backends(text: str) -> set[str]:
    """Attributes used of anything named `backend`, and calls of `getattr` or `hasattr` on it."""
    asked = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute) and is_backend(node.value):
            asked.add(node.attr)
        if isinstance(node, ast.Call) and node.args and is_backend(node.args[0]):
            called = node.func.id if isinstance(node.func, ast.Name) else ""
            asked |= {called} & {"getattr", "hasattr", "isinstance"}
    return asked


def is_backend(node: ast.expr) -> bool:
    return (isinstance(node, ast.Name) and node.id == "backend") or (
        isinstance(node, ast.Attribute) and node.attr == "backend"
    )


#: What a room asks of a backend with a GPU (`backend.name`) for its own launches.
OF_A_GPU = {"device", "kernel", "free_bytes", "host_bytes", "device_bytes"}


@pytest.mark.parametrize("path", CALLERS, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_module_uses_more_than_the_protocol(path):
    text = path.read_text()
    allowed = {*methods(PROTOCOL), *ATTRIBUTES}
    allowed |= OF_A_GPU if 'backend.name == "gpu"' in text else set()
    assert asked_of_backends(text) <= allowed


def test_the_protocol_is_small():
    assert len(methods(PROTOCOL)) <= 8


def test_uses_of_a_backend_are_found():
    text = 'backend.minplus(1); self.backend.fits(2); getattr(backend, "r2_pairs", None)'
    assert asked_of_backends(text) == {"minplus", "fits", "getattr"}


def test_threads_come_from_the_job():
    for path in PACKAGE.rglob("*.py"):
        if path.name != "threads.py":
            assert "cpu_count" not in path.read_text(), path
