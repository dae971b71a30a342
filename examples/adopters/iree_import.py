"""IREE's importer (torch-mlir has the same) of a model whose weights are in a file of their own, at a newer opset.

iree/compiler/tools/import_onnx/__main__.py raises NotImplementedError for --opset-version with --large-model.
Here the opset is changed before, and the weights are copied from file to file, none of them read.
"""

import sys

from iree.compiler.tools.import_onnx import __main__ as importer

import onnx_migrate

source, target = sys.argv[1:]
changed = f"{target}.onnx"
onnx_migrate.migrate(source, opset=17, verify=False, simplify=False).save(changed, external=True)
arguments = [changed, "--large-model", "--externalize-params", "--no-save-params", "-o", target]
sys.exit(importer.main(importer.parse_arguments(arguments)))
