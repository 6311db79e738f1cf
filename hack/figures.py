"""Prints figures about the shape of slurm_bridge, for comparing two states of the tree.

    hack/figures.py [--tree DIR] [--packages]

They are indications and no goals: docs/contributing.md says how each is counted and what it is good for.
"""

import argparse
import ast
import collections
import pathlib
import re
import statistics
import sys
from collections.abc import Iterable, Iterator

import source_tree
from source_tree import Module

PROJECT = pathlib.Path(__file__).resolve().parents[1]

#: The stand-ins for both servers and what is shown with them: no part of the daemon.
STAND_INS = ("sim", "demo")

#: What can hold something for each workload and changes; a Mapping or a frozenset in a record is a value.
CONTAINERS = re.compile(r"^(dict|set|OrderedDict|defaultdict|Counter|MutableMapping|\w*(Cache|Dict|Memo|Recent|Kept))$")

#: A private function of so few lines, called once, is a jump for the reader.
FEW = 3

KEY = "WorkloadKey"
#: Kinds whose names mean nothing else.
KINDS = ("JobSet", "LeaderWorkerSet")


def main(arguments: list[str] | None = None) -> int:
    """Print one line for each figure, and one for each package if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tree", type=pathlib.Path, default=PROJECT, help="a checkout, this one if not given")
    parser.add_argument("--packages", action="store_true", help="modules, lines and imports of each package too")
    asked = parser.parse_args(arguments)
    modules = source_tree.modules(asked.tree)
    if not modules:
        parser.error(f"{asked.tree} has no {source_tree.ROOT}")
    rows = list(figures(modules))
    width = max(len(name) for name, _ in rows)
    print(*(f"{name:{width}}  {value}" for name, value in rows), sep="\n")
    if asked.packages:
        print("", *packages(modules), sep="\n")
    return 0


def figures(modules: tuple[Module, ...]) -> Iterator[tuple[str, str]]:
    """Name and value of each figure."""
    daemon = tuple(module for module in modules if module.package not in STAND_INS)
    yield "modules", f"{len(modules)}, without {' and '.join(STAND_INS)} {len(daemon)}"
    without_sim = lines(module for module in modules if module.package != "sim")
    yield "lines", f"{lines(modules)}, without sim {without_sim}, without {' and '.join(STAND_INS)} {lines(daemon)}"
    yield "class names in more than one package", str(len(namesakes(modules)))
    yield "words for persons", _by_kind(modules)
    yield "lines of a function's body", _spread(bodies(modules))
    yield f"private functions of at most {FEW} lines that are called once", str(len(once(modules)))
    yield "containers keyed by a workload", _by_package(keyed(daemon))
    yield "functions named forget", str(sum(function.name == "forget" for function in _functions(modules)))
    yield f"parameters named uid that are a {KEY}", str(len(misnamed(modules)))
    for kind in KINDS:
        yield f"modules whose code names a {kind}", str(len(naming(daemon, kind)))


def lines(modules: Iterable[Module]) -> int:
    """All lines, with blank ones and docstrings."""
    return sum(len(module.lines) for module in modules)


def namesakes(modules: Iterable[Module]) -> list[str]:
    """Names of classes at the top of modules of several packages."""
    packages_of = collections.defaultdict(set)
    for module in modules:
        for name, _ in source_tree.class_names(module):
            packages_of[name].add(module.package)
    return sorted(name for name, found in packages_of.items() if len(found) > 1)


def bodies(modules: Iterable[Module]) -> list[int]:
    """How many lines the body of each function has, sorted; those without any (`...`, a docstring) are left out."""
    return sorted(
        source_tree.body_lines(module, function)
        for module in modules
        for function in source_tree.functions(module)
        if not _stub(function)
    )


def once(modules: Iterable[Module]) -> list[str]:
    """Private functions and methods of few lines whose name is used once in their module."""
    found = []
    for module in modules:
        used = collections.Counter(_names(module.tree))
        private = [
            function
            for function in source_tree.functions(module)
            if function.name.startswith("_") and not function.name.startswith("__")
        ]
        defined = collections.Counter(function.name for function in private)
        found += [
            f"{module.path}:{function.lineno} {function.name}"
            for function in private
            if used[function.name] == defined[function.name] and source_tree.body_lines(module, function) <= FEW
        ]
    return found


def keyed(modules: Iterable[Module]) -> list[tuple[str, str]]:
    """Attributes that hold something for each workload: package, and where.

    An attribute counts whose annotation is a container with WorkloadKey in its first argument, or whose first argument
    is a `str` and whose name has the word workload in it.
    """
    return [
        (module.package, f"{module.path}:{node.lineno} {ast.unparse(node.target)}")
        for module in modules
        for node in _attributes(module.tree)
        if _keyed(node)
    ]


def misnamed(modules: Iterable[Module]) -> list[str]:
    """Parameters called uid that are given the key of a workload."""
    return [
        f"{module.path}:{function.lineno} {function.name}"
        for module in modules
        for function in source_tree.functions(module)
        for argument in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
        if argument.arg == "uid" and argument.annotation is not None and _mentions(argument.annotation, KEY)
    ]


def naming(modules: Iterable[Module], kind: str) -> list[str]:
    """Modules that name a kind of workload in code or messages, not only in docstrings and comments."""
    wanted = kind.lower()
    found = []
    for module in modules:
        if wanted in module.text.lower():
            code = ast.unparse(_without_docstrings(ast.parse(module.text)))
            if wanted in code.lower() or wanted in module.path.stem.lower():
                found.append(str(module.path))
    return found


def packages(modules: Iterable[Module]) -> Iterator[str]:
    """Modules and lines of each package, how many other packages it imports, and how many import it."""
    by_package = collections.defaultdict(list)
    for module in modules:
        by_package[module.package].append(module)
    known = {".".join(module.path.with_suffix("").parts).removesuffix(".__init__"): module for module in modules}
    imports = {
        package: {other for module in members for other in _imported(module, known)} - {package}
        for package, members in by_package.items()
    }
    yield f"{'package':24}{'modules':>9}{'lines':>9}{'imports':>9}{'imported by':>13}"
    for package, members in sorted(by_package.items()):
        users = sum(package in others for others in imports.values())
        yield f"{package:24}{len(members):9}{lines(members):9}{len(imports[package]):9}{users:13}"


def _functions(modules: Iterable[Module]) -> Iterator[source_tree.Function]:
    return (function for module in modules for function in source_tree.functions(module))


def _stub(function: source_tree.Function) -> bool:
    body = function.body[1:] if source_tree.described(function) else function.body
    return all(isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) for node in body)


def _names(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Name):
            yield node.id


def _attributes(tree: ast.Module) -> Iterator[ast.AnnAssign]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield from (part for part in node.body if isinstance(part, ast.AnnAssign))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Attribute):
            yield node


def _keyed(node: ast.AnnAssign) -> bool:
    if not isinstance(node.annotation, ast.Subscript):
        return False
    container, arguments = node.annotation.value, node.annotation.slice
    if not CONTAINERS.match(ast.unparse(container).rpartition(".")[2]):
        return False
    key = arguments.elts[0] if isinstance(arguments, ast.Tuple) else arguments
    named = "workload" in ast.unparse(node.target).rpartition(".")[2]
    return _mentions(key, KEY) or (named and ast.unparse(key) == "str")


def _mentions(annotation: ast.expr, name: str) -> bool:
    return any(
        (isinstance(node, ast.Name) and node.id == name) or (isinstance(node, ast.Attribute) and node.attr == name)
        for node in ast.walk(annotation)
    )


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            for part in body:
                if isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant):
                    part.value = ast.Constant(...)
    return tree


def _imported(module: Module, known: dict[str, Module]) -> Iterator[str]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            found = known.get(name) or known.get(name.rpartition(".")[0])
            if found is not None:
                yield found.package


def _by_kind(modules: Iterable[Module]) -> str:
    counts = collections.Counter(passage.kind for module in modules for passage, _ in source_tree.about_persons(module))
    return f"{counts.total()}: " + ", ".join(f"{counts[kind]} in {kind}s" for kind in source_tree.PASSAGES)


def _by_package(found: list[tuple[str, str]]) -> str:
    counts = collections.Counter(package for package, _ in found)
    return f"{len(found)}: " + ", ".join(f"{count} in {package}" for package, count in sorted(counts.items()))


def _spread(sizes: list[int]) -> str:
    if not sizes:
        return "none"
    high = sizes[min(len(sizes) - 1, round(0.95 * len(sizes)))]
    return (
        f"median {statistics.median_low(sizes)}, 95 of 100 at most {high}, longest {sizes[-1]}; {len(sizes)} functions"
    )


if __name__ == "__main__":
    sys.exit(main())
