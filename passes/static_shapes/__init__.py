"""The pass that gives every value a fixed shape: it folds shape arithmetic, and reports sizes that depend on data."""
