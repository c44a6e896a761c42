"""Worlds by name: built in, from a module, or from a file of the user's.

``bench/session`` is ``troth/models/worlds/bench/session.py``; ``package.module:ATTR`` and ``path.py:ATTR`` are the user's own. What is
wrong with a user's file is said in one line that names the file and the line in it.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from pkgutil import walk_packages
from types import CodeType, ModuleType
from typing import Any

import click
from attrs import frozen

import troth
from troth.models import worlds as built_in
from troth.models.bounds import Blueprint
from troth.models.world import World

PREFIX = f"{built_in.__name__}."


@frozen
class Found:
    """A world by its name on the command line. ``blueprint`` is ``None`` where it has no bounds to choose."""

    name: str
    make: Callable[[], World]
    blueprint: Blueprint | None
    where: str
    """The file that declares it."""
    line: int = 0
    """Where in it, as far as that is known."""

    def build(self, bounds: Mapping[str, int], *, strict: bool = True) -> World:
        """The world, closed, at these bounds. ``strict=False`` passes over bounds that it has not."""
        with blamed(self.where, self.name, self.line):
            if self.blueprint is None:
                if bounds and strict:
                    raise click.UsageError(f"world {self.name} has no bound {next(iter(bounds))!r}; it has none")
                world = self.make()
            else:
                known = self.blueprint.bounds
                world = self.blueprint.build(**{n: v for n, v in bounds.items() if strict or n in known})
            world.system()
        return world


@contextmanager
def blamed(where: str, name: str, start: int = 0) -> Iterator[None]:
    """Turn whatever goes wrong inside into one line that says where in the user's file it went wrong."""
    try:
        yield
    except (click.ClickException, KeyboardInterrupt):
        raise
    except SyntaxError as error:
        raise click.UsageError(f"{_short(error.filename or where)}:{error.lineno or 0}: {type(error).__name__}: {error.msg}") from error
    except Exception as error:
        raise click.UsageError(f"{place_of(error, where, name, start)}{said(error)}") from error


def said(error: BaseException) -> str:
    """An exception's own words; its class too where it is not one of ours, which say enough."""
    ours = type(error).__module__.startswith("troth.")
    return str(error) if ours else f"{type(error).__name__}: {error}"


def place_of(error: BaseException, where: str, name: str = "", start: int = 0) -> str:
    """``file:line: `` of the innermost line of the user's code that led to ``error``; where there is none, of the world's first line."""
    frames = list(_frames(error))
    own = Path(where).resolve() if where else None
    mine = [f for f in frames if own is not None and Path(f[0]).resolve() == own] or [f for f in frames if _foreign(f[0])]
    if mine:
        return f"{_short(mine[-1][0])}:{mine[-1][1]}: "
    if start and _foreign(where):
        return f"{_short(where)}:{start}: "
    return f"{name}: " if name and name not in str(error) else ""


def _frames(error: BaseException) -> Iterator[tuple[str, int]]:
    found: BaseException | None = error
    while found is not None:
        for frame, line in traceback.walk_tb(found.__traceback__):
            yield frame.f_code.co_filename, line
        found = found.__cause__


def _foreign(filename: str) -> bool:
    """Whether a file is neither ours nor the interpreter's."""
    path = str(Path(filename).resolve())
    homes = [str(Path(troth.__file__).parent), str(Path(troth.__file__).resolve().parent.parent.parent), sys.prefix, sys.base_prefix]
    return not filename.startswith("<") and not any(path.startswith(f"{home}/") for home in homes)


def _short(filename: str) -> str:
    path = Path(filename).resolve()
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else filename


# -- finding -----------------------------------------------------------------------------------------------------------


def find(name: str) -> Found:
    """The world of that name. Raises ``click.UsageError`` where there is none, or its file cannot be imported."""
    target, colon, attribute = name.rpartition(":")
    if not colon:
        target, attribute = name, ""
    if target.endswith(".py"):
        return _picked(name, _from_file(target), attribute)
    if colon:
        return _picked(name, _from_module(target), attribute)
    return _built_in(name)


def names() -> list[str]:
    """The built-in worlds: what can be given as they are."""
    modules = (m.name.removeprefix(PREFIX) for m in walk_packages(built_in.__path__, PREFIX) if not m.ispkg)
    given = (name for name in modules if not name.rpartition(".")[2].startswith("_") and not name.startswith(f"{built_in.PARTS}."))
    return sorted(name.replace(".", "/") for name in given)


def all_built_in() -> Iterator[Found]:
    """Every built-in world, imported."""
    for name in names():
        module = importlib.import_module(PREFIX + name.replace("/", "."))
        blueprints = _own(module)
        if len(blueprints) == 1:
            yield _found(name, module, next(iter(blueprints.values())))
        else:
            for attribute, one in blueprints.items():
                yield _found(one.name if isinstance(one, Blueprint) else attribute, module, one)


def _built_in(name: str) -> Found:
    known = names()
    path = name.replace("-", "_")
    if path in known:
        module = importlib.import_module(PREFIX + path.replace("/", "."))
        own = _own(module)
        named = [one for one in own.values() if one.name == name]
        if len(named) == 1 or len(own) == 1:
            return _found(name, module, (named or list(own.values()))[0])
    for found in all_built_in() if "/" in name or path not in known else ():
        if found.name == name:
            return found
    close = get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"perhaps {close[0]}" if close else f"there are {', '.join(known) or 'none'}"
    raise click.UsageError(f"there is no world {name!r}; {hint}; a world of your own is package.module:ATTR or path.py:ATTR")


def _from_file(path: str) -> ModuleType:
    file = Path(path)
    if not file.is_file():
        raise click.UsageError(f"there is no file {path}")
    name = f"troth_world_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise click.UsageError(f"{path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(file.resolve().parent))  # so that it finds its neighbours, as when it is run as a script
    sys.modules[name] = module
    with blamed(path, path):
        spec.loader.exec_module(module)
    return module


def _from_module(name: str) -> ModuleType:
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))  # as `python -m` has it, and a console script has not
    try:
        spec = importlib.util.find_spec(name)
    except ModuleNotFoundError:
        spec = None
    except (ImportError, ValueError) as error:
        raise click.UsageError(f"{name}: {error}") from error
    if spec is None:
        raise click.UsageError(f"there is no module {name!r}")
    with blamed(spec.origin or "", name):
        return importlib.import_module(name)


def _own(module: ModuleType) -> dict[str, Blueprint | World]:
    """The worlds that a module declares, each once."""
    found: dict[str, Blueprint | World] = {}
    for attribute, value in vars(module).items():
        if isinstance(value, Blueprint | World) and not attribute.startswith("_") and value not in found.values():
            found[attribute] = value
    return found


def value_of(name: str) -> Any:
    """What ``package.module:ATTR`` or ``path.py:ATTR`` is; ``None`` for any other name, and where there is no such thing."""
    target, colon, attribute = name.rpartition(":")
    if not colon:
        return None
    found: Any = _from_file(target) if target.endswith(".py") else _from_module(target)
    for part in attribute.split("."):
        found = getattr(found, part, None)
    return found


def _picked(name: str, module: ModuleType, attribute: str) -> Found:
    if not attribute:
        own = _own(module)
        if len(own) != 1:
            which = f"one of {', '.join(own)}" if own else "it declares none (decorate a function with @blueprint)"
            raise click.UsageError(f"{name}: which world? Give {name}:ATTR; {which}")
        return _found(name, module, next(iter(own.values())))
    value: Any = module
    for part in attribute.split("."):
        if not hasattr(value, part):
            own = _own(module)
            raise click.UsageError(f"{name}: there is no {attribute!r}; its worlds are {', '.join(own) or 'none'}")
        value = getattr(value, part)
    return _found(name, module, value)


def _found(name: str, module: ModuleType, value: Any) -> Found:
    where = module.__file__ or ""
    if isinstance(value, Blueprint):
        return Found(name, value.build, value, where, _line(value.make))
    if isinstance(value, World):
        return Found(name, lambda: value, None, where)
    if callable(value):
        return Found(name, lambda: _called(name, value), None, where, _line(value))
    raise click.UsageError(f"{name} is {value!r}; a world is a @blueprint, a World, or a function that returns one")


def _line(of: Any) -> int:
    code = getattr(of, "__code__", None)
    return code.co_firstlineno if isinstance(code, CodeType) else 0


def _called(name: str, make: Callable[[], Any]) -> World:
    made = make()
    if isinstance(made, Blueprint):
        made = made.build()
    if not isinstance(made, World):
        raise click.UsageError(f"{name} returned {made!r}; it must return a World")
    return made


def bounds_of(options: Sequence[str]) -> dict[str, int]:
    """``NAME=VALUE`` options as a mapping. Raises ``click.UsageError`` for what is not of that form."""
    found: dict[str, int] = {}
    for option in options:
        name, equals, value = option.partition("=")
        if not equals or not name.isidentifier() or not value.lstrip("-").isdecimal():
            raise click.UsageError(f"--bound {option}: write NAME=VALUE with a whole number, like --bound T=2")
        if name in found:
            raise click.UsageError(f"--bound {name} was given twice")
        found[name] = int(value)
    return found
