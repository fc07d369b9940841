"""`streamgauge produce <domain>`: one command per domain, implemented by `produce` in producers.<domain>."""

from importlib import import_module

import typer

from contract.domains import NAMES

produce = typer.Typer(help="Write events into the source topics.", no_args_is_help=True, rich_markup_mode=None)
for name in NAMES:
    produce.command(name)(import_module(f"producers.{name}").produce)
