"""The project's texts by kind: README, help, docs, generated pages, docstrings, comments, messages and error texts."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

from tools.prose.sentences import Block

__all__ = ["GENERATED", "blocks_of", "kinds_of", "markdown"]

GENERATED = (
    "docs/commands.md",
    "docs/errors/",
    "docs/operators-down.md",
    "docs/operators.md",
    "docs/options.md",
    "docs/runtimes.md",
)
"""Pages that the tests write from docstrings, options and tables; the sentences belong to these sources."""

_ITEM = re.compile(r"^\s*(?:[-*+]|\d+\.)\s+")


def kinds_of(path: str) -> tuple[str, ...]:
    """Return the kinds of text that a file has, by its path in the project."""
    if path == "README.md":
        return ("readme",)
    if path.startswith(GENERATED):
        return ("generated",)
    if path.endswith(".md"):
        return ("docs",)
    if path.endswith(".toml"):
        return ("error texts",)
    return ("help", "docstrings", "comments", "messages")


def blocks_of(path: Path, kind: str) -> Iterator[Block]:
    """Yield the blocks of text of one kind in a file."""
    source = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        yield from markdown(source)
    elif path.suffix == ".toml":
        yield from _toml(source)
    elif kind == "comments":
        yield from _comments(source)
    else:
        tree = ast.parse(source)
        yield from {"help": _help, "docstrings": _docstrings, "messages": _messages}[kind](tree)


def markdown(source: str) -> Iterator[Block]:
    """Yield paragraphs, items of lists and cells of tables, without headings and code."""
    lines: list[str] = []
    first, code, html = 1, False, False
    for number, line in enumerate([*source.splitlines(), ""], 1):
        fence = line.lstrip().startswith("```")
        code ^= fence
        html = (html or line.startswith("<")) and bool(line.strip())
        table = line.lstrip().startswith("|")
        outside = fence or code or html or table or line.startswith(("#", "    ", "<!--", ":::"))
        if lines and (outside or not line.strip() or _ITEM.match(line)):
            yield Block(first, "\n".join(lines))
            lines = []
        if table and not code:
            yield from (Block(number, cell, fragment=True) for cell in re.split(r"(?<!\\)\|", line))
        elif not outside and line.strip():
            first = number if not lines else first
            lines.append(_ITEM.sub("", line))


def _toml(source: str) -> Iterator[Block]:
    """Yield the strings of a table that read like text, each with its line."""
    for match in re.finditer(r'"""(.*?)"""|"((?:[^"\\\n]|\\.)*)"', source, re.DOTALL):
        text = match[1] if match[1] is not None else match[2]
        if " " in text:
            yield from _paragraphs(source[: match.start()].count("\n") + 1, text, fragment=match[1] is None)


def _comments(source: str) -> Iterator[Block]:
    """Yield the comments of a module; those on lines that follow each other are one text."""
    lines: list[str] = []
    first = last = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT or re.match(r"#\s*(?:type:|noqa|fmt:|!)", token.string):
            continue
        row, text = token.start[0], token.string.lstrip("# ")
        if lines and row != last + 1:
            yield Block(first, "\n".join(lines))
            lines = []
        first = row if not lines else first
        lines.append(text)
        last = row
    if lines:
        yield Block(first, "\n".join(lines))


def _docstrings(tree: ast.AST) -> Iterator[Block]:
    for parent, text in _documentation(tree):
        if not _is_command(parent):
            yield from _paragraphs(
                text.lineno, str(text.value), fragment=not _describes_function(parent, text)
            )


def _help(tree: ast.AST) -> Iterator[Block]:
    """Yield the help of options, and the docstrings of commands."""
    for parent, text in _documentation(tree):
        if _is_command(parent):
            yield from _paragraphs(text.lineno, str(text.value))
    for text in _help_strings(tree):
        yield from _paragraphs(text.lineno, str(text.value), fragment=True)


def _messages(tree: ast.AST) -> Iterator[Block]:
    """Yield all other strings of several words."""
    other = {id(text) for _, text in _documentation(tree)} | {id(text) for text in _help_strings(tree)}
    inside = {
        id(value) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for value in node.values
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = (value.value if isinstance(value, ast.Constant) else "X" for value in node.values)
            yield from _paragraphs(node.lineno, "".join(map(str, parts)), fragment=True)
        elif _is_text(node) and id(node) not in other and id(node) not in inside:
            yield from _paragraphs(node.lineno, node.value, fragment=True)  # type: ignore[attr-defined]


def _documentation(tree: ast.AST) -> Iterator[tuple[ast.AST, ast.Constant]]:
    """Yield docstrings, and the strings after constants, with the node that they describe."""
    for parent in ast.walk(tree):
        body = getattr(parent, "body", None)
        for statement in body if isinstance(body, list) else ():
            if isinstance(statement, ast.Expr) and _is_text(statement.value):
                yield parent, statement.value  # type: ignore[misc]


def _help_strings(tree: ast.AST) -> Iterator[ast.Constant]:
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg in ("help", "short_help", "epilog"):
            for value in ast.walk(node.value):
                if _is_text(value):
                    yield value  # type: ignore[misc]


def _describes_function(parent: ast.AST, text: ast.Constant) -> bool:
    """Whether a string is the docstring of a function. The one of a module, a class or a constant may be a noun."""
    if not isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return False
    first = parent.body[0]
    return isinstance(first, ast.Expr) and first.value is text


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.count(" ") >= 3


def _is_command(node: ast.AST) -> bool:
    decorators = getattr(node, "decorator_list", ())
    return any(re.search(r"\bcommand\b", ast.unparse(decorator)) for decorator in decorators)


def _paragraphs(line: int, text: str, *, fragment: bool = False) -> Iterator[Block]:
    """Yield the paragraphs of a string; the names of `Args:` and code are no text."""
    start = 0
    for match in [*re.finditer(r"\n\s*\n|\n(?=\s*[-*] )|\n(?=\s+\w+: )", text), None]:
        part = text[start : match.start() if match else len(text)]
        if part.strip() and not part.lstrip().startswith(("```", ">>>", "\b")):
            yield Block(line + text[:start].count("\n"), re.sub(r"^\s*\w+: ", "", part), fragment)
        start = match.end() if match else 0
