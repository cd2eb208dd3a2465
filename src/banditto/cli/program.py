"""The program as typer sees it: verbs that are loaded when they are called, and help pages in plain text.

A shell that lists verbs or completes a word loads no verb, and a verb loads no other: starting Python with typer alone
takes a tenth of a second, and most of what verbs import takes longer than that.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, cast

import typer
import typer.core as typer_core
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from banditto.cli.verbs import GROUPS, VERBS
from banditto.core.errors import InvalidArgument

_WIDEST = 100  # columns of a help page


class _AsTyped:
    """Hand words over as they were typed; verbs check them. typer would load pydantic to turn text into text."""

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return the value; text that is no text, such as a file name in another encoding, is refused."""
        many = param.multiple or param.nargs == -1
        words = () if value is None else value if many else (value,)
        for word in words:
            if isinstance(word, str) and not _is_text(word):
                raise InvalidArgument(shown_name(param), ascii(word), "text in the encoding of this terminal")
        return tuple(words) if many else value


def _as_typed(parameters: list[Any]) -> list[Any]:
    """Let parameters take what was typed; only a flag with a default may be set by a variable, which is read as one."""
    for parameter in parameters:
        if parameter.default is None or not getattr(parameter, "is_flag", False):
            parameter._runtime_param = _AsTyped()
    return parameters


def _is_text(word: str) -> bool:
    try:
        word.encode()
    except UnicodeEncodeError:
        return False
    return True


class VerbCommand(TyperCommand):
    """One verb, with its options in sections and an example."""

    allow_extra_args = True  # they are refused below, in our words

    def get_params(self, ctx: Any) -> list[Any]:
        """Return all parameters, with that of the help."""
        return _as_typed(super().get_params(ctx))

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Write the words of the usage line: what may be left out is in brackets."""
        pieces = []
        for argument in filter(_is_argument, self.params):
            name = shown_name(argument) if argument.required else f"[{shown_name(argument)}]"
            pieces.append(f"{name}..." if argument.nargs == -1 else name)
        needed = [option for option in self.params if option.required and not _is_argument(option)]
        pieces += [f"{option.opts[0]} {option.metavar}" for option in needed]
        return [*pieces, "[OPTIONS]"]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words after the verb; one too many is an error that says what the verb takes."""
        rest = super().parse_args(ctx, args)
        if rest and not ctx.resilient_parsing:
            taken = " ".join(shown_name(parameter) for parameter in self.params if _is_argument(parameter))
            allowed = f"{taken} and options" if taken else "options alone"
            raise InvalidArgument(f"{self.name}", f"{rest[0]!r} too many", f"{allowed} (no blanks within a list)")
        return rest

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write what the verb takes: words, options by section, and an example."""
        _write_parameters(self.get_params(ctx), ctx, formatter, "Output")

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the example as it is typed, unbroken."""
        with formatter.section("Example"):
            formatter.write(f"  {VERBS[str(self.name)].example}\n")


class LazyVerbs(Mapping[str, Any]):
    """The verbs by name, each made on first use; going through the names loads nothing."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            function = getattr(import_module(f"banditto.cli.{VERBS[name].module}"), name)
            alone = typer.Typer(add_completion=False, rich_markup_mode=None)
            alone.command(name, cls=VerbCommand)(function)
            self._made[name] = get_command(alone)
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(VERBS)

    def __len__(self) -> int:
        return len(VERBS)


class Program(TyperGroup):
    """All verbs, in groups."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = cast(Any, LazyVerbs())

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the program's own parameters, with those that typer adds."""
        return _as_typed(super().get_params(ctx))

    def list_commands(self, ctx: Any) -> list[str]:
        """Name the verbs."""
        return list(VERBS)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the verb that was typed, with the words after it."""
        name = args[0]
        if name in VERBS:
            return name, self.commands[name], args[1:]
        if ctx.resilient_parsing:
            return None, None, args[1:]
        close = difflib.get_close_matches(name, VERBS, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"a verb: {', '.join(VERBS)}"
        raise InvalidArgument("COMMAND", repr(name), hint)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Complete a verb or an option of the program."""
        item: Any = vars(typer_core)["CompletionItem"]
        verbs = [item(name, help=verb.summary) for name, verb in VERBS.items() if name.startswith(incomplete)]
        options = [
            item(name, help=parameter.help)
            for parameter in self.get_params(ctx)
            for name in parameter.opts
            if incomplete.startswith("-") and name.startswith(incomplete)
        ]
        return verbs + options

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the verbs by group, then the program's own options."""
        widest = max(map(len, VERBS))
        for group, verbs in GROUPS.items():
            with formatter.section(group):
                formatter.write_dl([(name.ljust(widest), verb.summary) for name, verb in verbs.items()])
        _write_parameters(self.get_params(ctx), ctx, formatter, "Options")


def program(app: typer.Typer) -> Any:
    """Make the program of an application that has `Program` as its class."""
    return get_command(app)


def shown_name(parameter: Any) -> str:
    """Return what a help page calls an argument or an option."""
    return str((parameter.metavar or parameter.name.upper()) if _is_argument(parameter) else parameter.opts[0])


def _is_argument(parameter: Any) -> bool:
    return bool(parameter.param_type_name == "argument")


def _write_parameters(parameters: list[Any], ctx: Any, formatter: Any, of_help: str) -> None:
    """Write parameters by section, that of --help to the section named for it."""
    sections: dict[str, list[tuple[str, str]]] = {}
    for parameter in parameters:
        if _is_argument(parameter):
            mark = "  [required]" if parameter.required else ""
            title, line = "Arguments", (shown_name(parameter), f"{parameter.help}{mark}")
        else:
            title = of_help if parameter.name == "help" else parameter.rich_help_panel or "Options"
            line = parameter.get_help_record(ctx)
        if not parameter.hidden:
            sections.setdefault(title, []).append(line)
    for title in sorted(sections, key=lambda title: (title == "Output", title not in ("Arguments", "Options"))):
        with formatter.section(title):
            formatter.write_dl(sections[title], col_max=36)


SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": _WIDEST}
