"""Make the golden answers, compare them, show what differs.

Of each answer two hashes are kept: of its words and numbers, as they are read or spoken, and of the
whole text with all its markup. A new look changes the second ones only.

    python -m tests.golden.make                       write all anew: what differs now is meant
    python -m tests.golden.make --show NAME ...       what differs from the code that was hashed
    python -m tests.golden.make --show NAME --against REV     ... from the code of that revision
    python -m tests.golden.make --print NAME ...      the answers themselves, as JSON
    python -m tests.golden.make --compare FOLDER PART ...     what differs in parts, a file each

A NAME may be the start of names or have * in it; "views/memory" are all answers of that view.
"""

from __future__ import annotations

import argparse
import base64
import difflib
import hashlib
import html
import io
import json
import re
import subprocess
import sys
import tempfile
import traceback
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from PIL import Image

from .cases import FAMILIES

ROOT = Path(__file__).parent.parent.parent
STORED = Path(__file__).parent / "answers.json"
ACCEPT = "python -m tests.golden.make"
DIGITS = 8
"""Hexadecimal digits of a hash that are kept."""

NAMED = 4
"""Answers of a kind that a failure names."""


class Hashes(NamedTuple):
    """Of what an answer says, and of the whole of it."""

    words: str
    markup: str


# -- answers and their hashes --------------------------------------------------------------------


def asked(family: str) -> dict[str, Callable[[], str]]:
    """Everything that is asked of one family, by the name of its answer."""
    found: dict[str, Callable[[], str]] = {}
    for name, ask in FAMILIES[family]():
        number = 1
        while (own := name if number == 1 else f"{name} #{number}") in found:
            number += 1
        found[own] = ask
    return found


def hashes(answer: str) -> Hashes:
    """
    >>> hashes("<p>tp <b>2</b></p>").words == hashes('<div><i>tp</i>\\n2</div>').words
    True
    >>> hashes('<i aria-label="tp 2"></i>').words == hashes("tp 3").words
    False
    >>> hashes("2.160174773921781 s") == hashes("2.1601747739217814 s")
    True
    """
    return Hashes(_hash(words(answer)), _whole(answer))


def _whole(answer: str) -> str:
    return _hash(_PACKED.sub(_unpacked, answer))


def _hash(text: str) -> str:
    plain = _LONG.sub(lambda number: f"{float(number[0]):.9g}", text)
    return hashlib.sha256(plain.encode("utf-8", "surrogatepass")).hexdigest()[:DIGITS]


_LONG = re.compile(r"(?<!\d)\d{1,20}\.\d{10,}(?:e[-+]?\d+)?")
"""Numbers to the last digit, which Python 3.12 has otherwise: it rounds a sum once."""


def _hashes_again(answer: str, before: Hashes | None) -> Hashes:
    """Its hashes; where all of it is what it was, its words are too."""
    if before and _whole(answer) == before.markup:
        return before
    return hashes(answer)


_PACKED = re.compile(r"[A-Za-z0-9+/]{60,}={0,2}")


def _unpacked(match: re.Match[str]) -> str:
    """What a picture or packed numbers hold: how small they get depends on the machine's zlib."""
    try:
        data = base64.b64decode(match[0], validate=True)
        if data.startswith(b"\x89PNG"):
            image = Image.open(io.BytesIO(data))
            return f"{image.size} {image.getpalette()} {_hash(image.tobytes().hex())}"
        return _hash(zlib.decompress(data).hex())
    except (ValueError, zlib.error):
        return match[0]


_TAG = re.compile(r"<[a-zA-Z/!][^>]*>")
_SAID = re.compile(r' (?:aria-label|placeholder)="([^"]*)"')
_TYPED = re.compile(r'^<input\b[^>]* value="([^"]*)"')
_LOOSE = re.compile(r" (?=\W)|(?<=\W) ")


def words(answer: str) -> str:
    """What is read, and spoken of pictures: no tags, no space but between two words.

    >>> words('<p>tp <b>2</b>, pp&nbsp;4</p><svg role="img" aria-label="8 GPUs"><rect/></svg>')
    'tp 2,pp 4 8 GPUs'
    """
    return _LOOSE.sub("", " ".join(" ".join(_texts(answer)).split()))


def _texts(answer: str) -> Iterator[str]:
    """What stands between tags, and what tags themselves say."""
    at = 0
    for tag in _TAG.finditer(answer):
        yield html.unescape(answer[at : tag.start()])
        at = tag.end()
        if '="' in tag[0]:
            said = (*_SAID.findall(tag[0]), *_TYPED.findall(tag[0]))
            yield from map(html.unescape, said)
    yield html.unescape(answer[at:])


# -- what is stored ------------------------------------------------------------------------------


def stored() -> dict[str, Hashes]:
    found = json.loads(STORED.read_text(encoding="utf-8"))
    return {name: Hashes(*value.split()) for name, value in found.items()}


def store(found: Mapping[str, Hashes]) -> None:
    """One line an answer, so that a change of one is a line of a commit."""
    lines = (
        f"  {json.dumps(name, ensure_ascii=False)}: {json.dumps(' '.join(found[name]))}"
        for name in sorted(found)
    )
    STORED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def part_of(name: str) -> str:
    """Of what an answer is a part: its family; in the largest family, that of the views, its view.

    >>> part_of("views/memory/gpt3/en"), part_of("commands/rank 5")
    ('views/memory', 'commands')
    """
    family, _, rest = name.partition("/")
    return f"views/{rest.partition('/')[0]}" if family == "views" else family


def differences(part: str) -> str:
    """What differs in a part from what is stored, grouped, and what to do; empty if nothing."""
    before = {name: one for name, one in stored().items() if part_of(name) == part}
    asks = {name: ask for name, ask in asked(part.split("/")[0]).items() if part_of(name) == part}
    after = {name: _hashes_again(ask(), before.get(name)) for name, ask in asks.items()}
    both = [name for name in after if name in before]
    of_words = [name for name in both if after[name].words != before[name].words]
    of_markup = [name for name in both if after[name].markup != before[name].markup]
    kinds = {
        "words differ": of_words,
        "markup differs": [name for name in of_markup if name not in of_words],
        "new": sorted({*after} - {*before}),
        "asked no more": sorted({*before} - {*after}),
    }
    lines = [
        f"{kind}: {len(names)} of {len(after)}: {_listed(names)}"
        for kind, names in kinds.items()
        if names
    ]
    if not lines:
        return ""
    first = next(names[0] for names in kinds.values() if names)
    return "\n".join(
        [
            f"answers of {part} are not what they were:",
            *lines,
            f"See what differs:  {ACCEPT} --show {_quoted(first)}",
            f"If that is meant, accept it and say why in the commit:  {ACCEPT}",
        ]
    )


def compare(parts: Iterable[str], folder: Path) -> subprocess.Popen[str]:
    """A process that puts what differs in each part into its file, `file_of`."""
    command = [sys.executable, "-m", "tests.golden.make", "--compare", str(folder), *parts]
    return subprocess.Popen(command, cwd=ROOT, text=True)


def file_of(part: str, folder: Path) -> Path:
    return folder / part.replace("/", " ")


def _compare(parts: Iterable[str], folder: Path) -> None:
    for part in parts:
        try:
            found = differences(part)
        except Exception:
            found = traceback.format_exc()
        new = folder / "new"
        new.write_text(found, encoding="utf-8")
        new.rename(file_of(part, folder))


def _listed(names: list[str]) -> str:
    return "; ".join(names[:NAMED]) + ("; ..." if len(names) > NAMED else "")


def _quoted(name: str) -> str:
    return "'" + name.replace("'", "'\\''") + "'"


# -- showing -------------------------------------------------------------------------------------


def chosen(patterns: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The answers whose names are wanted."""
    wanted = list(patterns)
    for family in FAMILIES:
        for name, ask in asked(family).items():
            if any(_matches(name, one) for one in wanted):
                yield name, ask()


def _matches(name: str, pattern: str) -> bool:
    return name.startswith(pattern) or ("*" in pattern and fnmatchcase(name, pattern))


def answers_of(revision: str, patterns: list[str]) -> dict[str, str]:
    """The answers that the code of a revision gives, by its own way to ask for them."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        _git("worktree", "add", "--quiet", "--detach", str(tree), revision)
        try:
            command = [sys.executable, "-m", "tests.golden.make", "--print", *patterns]
            ran = subprocess.run(command, cwd=tree, check=True, capture_output=True)
        finally:
            _git("worktree", "remove", "--force", str(tree))
    return json.loads(ran.stdout)


def _git(*words: str) -> str:
    ran = subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True)
    return ran.stdout.strip()


def shown(patterns: list[str], against: str) -> Iterator[str]:
    """A unified diff of each answer that differs: of its words, else of its markup."""
    revision = against or _git("log", "-1", "--format=%H", "--", str(STORED))
    before, after = answers_of(revision, patterns), dict(chosen(patterns))
    for name in dict.fromkeys((*before, *after)):
        old, new = before.get(name, ""), after.get(name, "")
        if old == new:
            continue
        what, lines = ("words", _read) if words(old) != words(new) else ("markup", _marked)
        yield f"=== {name}: {what}"
        yield from difflib.unified_diff(
            lines(old), lines(new), revision[:10], "now", lineterm="", n=2
        )


def _read(answer: str) -> list[str]:
    """One line an element that says something."""
    lines = (line for text in _texts(answer) for line in text.splitlines())
    return [" ".join(line.split()) for line in lines if line.strip()]


def _marked(answer: str) -> list[str]:
    """One line a tag."""
    return answer.replace("><", ">\n<").splitlines()


def main() -> None:
    asks = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    asks.add_argument("--show", nargs="+", metavar="NAME", default=[])
    asks.add_argument("--against", metavar="REV", default="")
    asks.add_argument("--print", nargs="+", metavar="NAME", default=[], dest="printed")
    asks.add_argument("--compare", nargs="+", metavar=("FOLDER", "PART"), default=[])
    options = asks.parse_args()
    if options.compare:
        _compare(options.compare[1:], Path(options.compare[0]))
    elif options.printed:
        json.dump(dict(chosen(options.printed)), sys.stdout)
    elif options.show:
        for line in shown(options.show, options.against):
            print(line)
    else:
        store({n: hashes(ask()) for family in FAMILIES for n, ask in asked(family).items()})


if __name__ == "__main__":
    main()
