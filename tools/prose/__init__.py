"""Checks the project's English: README, help, docs, docstrings, comments, messages and error texts.

`python -m tools.prose` prints the share of sentences with a finding for each kind of text, and fails if a share exceeds its
ceiling in `ceilings.toml`. `python -m tools.prose --list docs README.md` prints each finding with its file and line.
CONTRIBUTING.md explains the rules.
"""
