"""All domains. To add one, add its files and one line here: docs/add-a-domain.md."""

from importlib import import_module

from contract.domains.domain import Domain
from contract.topics import SHARED

NAMES = (
    "nest",
    "taxi",
    "wikimedia",
)
DOMAINS: tuple[Domain, ...] = tuple(import_module(f"contract.domains.{name}").DOMAIN for name in NAMES)
TOPICS = (*(topic for domain in DOMAINS for topic in domain.topics), *SHARED)
"""All topics. Topics are created only from this list; the embedded broker creates none automatically."""
