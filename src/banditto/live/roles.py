"""A script of two roles for a PostgreSQL store: one that runs trials and cannot rewrite them, one that only reads.

python -m banditto.live.roles --schema public --trial banditto_trial --auditor banditto_auditor
"""

from __future__ import annotations

import argparse
import re
import sys
from importlib.resources import files

from banditto.core.errors import InvalidArgument

TRIAL, AUDITOR, SCHEMA_NAME = "banditto_trial", "banditto_auditor", "public"


def roles_script(schema: str = SCHEMA_NAME, trial: str = TRIAL, auditor: str = AUDITOR) -> str:
    """Write the script for a schema and with these names of the two roles; SQL comes back, for psql or any client."""
    for argument, name in (("schema", schema), ("trial", trial), ("auditor", auditor)):
        if not re.fullmatch(r"[a-z_][a-z0-9_]{0,62}", name):
            raise InvalidArgument(argument, name, "a name of lower-case letters, digits and underscores")
    text = (files("banditto.live") / "trial_role.sql").read_text(encoding="utf-8")
    text = text.replace(f"SCHEMA {SCHEMA_NAME}", f"SCHEMA {schema}").replace("--schema public", f"--schema {schema}")
    text = re.sub(rf"\b{TRIAL}\b", trial, re.sub(rf"\b{AUDITOR}\b", auditor, text))
    return re.sub(r"^-- Nobody gets", f"SET search_path = {schema};\n\n\\g<0>", text, flags=re.MULTILINE)


def main(given: list[str] | None = None) -> None:
    """Print the script."""
    parser = argparse.ArgumentParser(prog="python -m banditto.live.roles", description=__doc__.partition("\n")[0])
    parser.add_argument("--schema", default=SCHEMA_NAME, help="where the tables are")
    parser.add_argument("--trial", default=TRIAL, help="the role that runs trials")
    parser.add_argument("--auditor", default=AUDITOR, help="the role that only reads")
    words = parser.parse_args(given)
    try:
        sys.stdout.write(roles_script(words.schema, words.trial, words.auditor))
    except InvalidArgument as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
