"""How each foreign runtime is driven: files that run by themselves in any Python from 3.7 on that has NumPy and the runtime.

They import nothing of this package. `serve.py` is the program; it gets the path of one of the others, which has

* `version()`: the name of the runtime and its version, as in "tract 0.23.9"; raises ImportError where it is missing;
* `load(path, example, outputs)`: loads the model at `path` and returns a function from a feed (arrays by input name) to
  the list of the values of `outputs`, the names of the model's outputs in its order. `example` is the first feed, for
  runtimes that want shapes or types beforehand. What either raises is an error of loading or of running.

The evaluator that starts the program is ../foreign.py.
"""
