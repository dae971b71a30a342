"""Drivers of foreign runtimes: standalone files for any Python from 3.7 on that has NumPy and the runtime.

They import nothing of this package. `serve.py` is the program. It gets the path of another file here, a driver, which has

* `version()`: the name of the runtime and its version, as in "tract 0.23.9". Raises ImportError if the runtime is missing.
* `load(path, example, outputs)`: loads the model at `path` and returns a function. The function maps a feed (arrays by
  input name) to the list of the values of `outputs`, all outputs of the model in its order. `example` is the first feed, for
  runtimes that need shapes or types beforehand. An exception of either is an error of loading or of running.

The evaluator that starts the program is ../foreign.py.
"""
