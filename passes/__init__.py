"""The passes: every file is one pass, and adapters/ holds one file per operator family."""
