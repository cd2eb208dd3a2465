"""What an error looks like on the command line: one line, or one object with `--json`, with options by their names."""

from __future__ import annotations

import difflib
import inspect
import json
import sys
from collections.abc import Sequence
from typing import Any, get_type_hints

import typer

from banditto.cli.output import columns_of
from banditto.cli.parameters import StandsFor
from banditto.cli.program import shown_name
from banditto.core.errors import InvalidArgument, NoPlan, Unfinished, masked
from banditto.core.text import fitted, short, text_table


def print_error(error: Exception, given: Sequence[str], verb: Any = None) -> None:
    """Print one line on stderr, or with `--json` one object: code, argument, given, allowed, message.

    A plan that cannot be had is followed by a short table of those that can, or has them as `offers`; a selection that
    cannot go on by what is known so far, or has it as `estimates`.

    `given` are the words of the command line, `verb` is the command that they begin with, if there is one.
    """
    argument = value = allowed = None
    error = _in_our_words(error, given, verb)
    if isinstance(error, InvalidArgument):
        argument, value, allowed = option_name(error.argument, given, verb), error.given, error.allowed
        message = f"{argument}: got {value}, allowed: {allowed}"
    elif isinstance(error, typer.TyperException):
        message = masked(" ".join(error.format_message().split()))
        parameter = getattr(error, "param", None)
        argument = getattr(error, "option_name", None) or (parameter and parameter.opts[0])
    elif isinstance(error, OSError):
        message = f"cannot write or read {error.filename or 'the output'}: {error.strerror}"
    else:
        message = str(error)
    if not message:
        return  # the help has been printed instead
    if "--json" in given:
        code = getattr(error, "code", "usage")
        fields: dict[str, Any] = {"code": code, "argument": argument, "given": value, "allowed": allowed}
        fields["message"] = message
        if isinstance(error, NoPlan):
            fields["offers"] = [offer._asdict() for offer in error.offers]
        if isinstance(error, Unfinished):
            fields["estimates"] = {arm: {"mean": mean, "pulls": n} for arm, (mean, n) in error.estimates.items()}
        sys.stderr.write(json.dumps(fields) + "\n")
    else:
        sys.stderr.write(f"banditto: error: {message}\n")
        if isinstance(error, NoPlan) and error.offers:
            header = ("rho", "gap", "horizon", "same")
            rows = [
                (f"{offer.rho:.3g}", f"{offer.gap:.3g}", f"{offer.horizon:,}", offer.level) for offer in error.offers
            ]
            with fitted(columns_of(sys.stderr)):
                sys.stderr.write(f"What can be had:\n{text_table(header, rows)}\n")
        if isinstance(error, Unfinished) and error.estimates:
            known = [(a, "" if mean is None else short(mean), f"{n:,}") for a, (mean, n) in error.estimates.items()]
            with fitted(columns_of(sys.stderr)):
                sys.stderr.write(f"What is known so far:\n{text_table(('arm', 'mean', 'pulls'), known, align='lrr')}\n")


def _in_our_words(error: Exception, given: Sequence[str], verb: Any) -> Exception:
    """Say what typer refused as all else is refused: which argument, what was given, what is allowed."""
    parameter = getattr(error, "param", None)
    if hasattr(error, "param_type") and parameter is not None:  # it was not given
        return InvalidArgument(shown_name(parameter), "nothing", _wanted(parameter))
    option = getattr(error, "option_name", None)
    if option is None:
        return error
    options = {} if verb is None else {name: one for one in verb.params for name in one.opts if name.startswith("-")}
    if option not in options:
        close = difflib.get_close_matches(option, options, n=2)
        page = "banditto --help" if verb is None else f"banditto {verb.name} --help"
        return InvalidArgument(option, "an unknown option", " or ".join(close) or f"what `{page}` lists")
    if options[option].is_flag:
        written = next((word for word in given if word.startswith(f"{option}=")), option)
        return InvalidArgument(option, written, f"{option} alone")
    return InvalidArgument(option, "nothing", _wanted(options[option]))


def _wanted(parameter: Any) -> str:
    """Say what a parameter is for, as its help does, without a capital and a full stop."""
    text = str(parameter.help).split(" (default")[0].rstrip(".")
    return text if text[1:2].isupper() else text[:1].lower() + text[1:]


def option_name(argument: str, given: Sequence[str], verb: Any) -> str:
    """Write a library's argument as the verb's own parameters call it; what is inside a file keeps its name."""
    if verb is None:
        return argument
    declared = get_type_hints(inspect.unwrap(verb.callback), include_extras=True)
    words = {word.partition("=")[0] for word in given}
    own: dict[str, str] = {}
    lent: dict[str, str] = {}
    said: dict[str, str] = {}  # what options on the command line stand for
    for parameter in verb.params:
        positional = parameter.param_type_name == "argument"
        name = parameter.metavar if positional else parameter.opts[0]
        own.setdefault(name.lower() if positional else name.lstrip("-").replace("-", "_"), name)
        for role in getattr(declared.get(parameter.name), "__metadata__", ()):
            if isinstance(role, StandsFor) and (name in words or not role.where_given):
                lent |= dict.fromkeys(role.names, name)
                said |= dict.fromkeys(role.names, name) if role.where_given else {}
    found = (lent | own).get(argument, argument)
    return found if found in words else said.get(argument, found)
