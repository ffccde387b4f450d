"""``sparseloom cache``: the compiled kernels that are kept on disk."""

from __future__ import annotations

import argparse
import time

from sparseloom.cli.arguments import Subcommands, add_subcommand
from sparseloom.cli.terminal import memory, plural
from sparseloom.toolchain.cache import KernelCache, kernel_cache

ABOUT = "Show or clear the cache of compiled kernels."
EXAMPLES = """
sparseloom cache                                   folder, number of kernels, size and limit
sparseloom cache clear                             remove every kernel
SPARSELOOM_CACHE_DIR=~/kernels sparseloom cache    use another folder
SPARSELOOM_CACHE_LIMIT=2G                          let it grow to 2 GiB; SPARSELOOM_NO_CACHE=1 does without
"""


def add_to(subcommands: Subcommands) -> None:
    """Declare the subcommand."""
    parser = add_subcommand(subcommands, "cache", execute, ABOUT, EXAMPLES)
    parser.add_argument("action", nargs="?", choices=("show", "clear"), default="show", help="what to do (default: show)")


def execute(options: argparse.Namespace) -> int:
    """Describe the cache, or empty it."""
    cache = kernel_cache()
    if options.action == "clear":
        size = cache.size
        print(f"removed {plural(cache.clear(), 'kernel')}, {memory(size)}")
    else:
        print("\n".join(lines(cache)))
    return 0


def lines(cache: KernelCache) -> list[str]:
    """What there is to know about the cache."""
    if cache.folder is None:
        return ["folder   none: kernels are not kept (SPARSELOOM_NO_CACHE is set)"]
    entries = cache.entries()
    share = f" ({100 * cache.size / cache.limit:.2g} %)" if entries and cache.limit else ""
    found = [f"folder   {cache.folder}", f"kernels  {len(entries)}", f"size     {memory(cache.size)} of {memory(cache.limit)}{share}"]
    if entries:
        days = (time.time() - entries[0].last_used) / 86400
        found.append(f"oldest   last used {'today' if days < 1 else plural(int(days), 'day') + ' ago'}")
    return found
