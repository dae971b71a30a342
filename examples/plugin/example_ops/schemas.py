"""The schemas of the operators, in both opsets. onnx's checker and shape inference use them too.

By these onnx-migrate knows which opsets the domain has, and refuses a node that is not valid at its opset. Operators without a
schema can be declared instead: `onnx_migrate.plugins.declare_operator("Swish", 1, 2, domain="com.example")`.
"""

from onnx import defs, shape_inference

from example_ops import DOMAIN


def like_input(context: shape_inference.InferenceContext) -> None:
    """The output has the type and shape of the input."""
    context.set_output_type(0, context.get_input_type(0))


FLOATS = [("T", ["tensor(float16)", "tensor(float)", "tensor(double)"], "floating point")]
PARAMETER = defs.OpSchema.FormalParameter
OPTIONAL = defs.OpSchema.FormalParameterOption.Optional


def register() -> None:
    """Register each schema once: ONNX refuses a second."""
    if defs.has("Swish", DOMAIN):
        return
    x, y = PARAMETER("x", "T"), PARAMETER("y", "T")
    beta = defs.OpSchema.Attribute(
        "beta", defs.OpSchema.AttrType.FLOAT, "x * sigmoid(beta * x); 1 by default"
    )
    clamp = [
        defs.OpSchema.Attribute(name, defs.OpSchema.AttrType.FLOAT, "a bound") for name in ("low", "high")
    ]
    for schema in (
        defs.OpSchema(
            "Swish", DOMAIN, 1, inputs=[x], outputs=[y], type_constraints=FLOATS, attributes=[beta]
        ),
        defs.OpSchema(
            "Swish",
            DOMAIN,
            2,
            inputs=[x, PARAMETER("beta", "T", param_option=OPTIONAL)],
            outputs=[y],
            type_constraints=FLOATS,
        ),
        defs.OpSchema("Clamp", DOMAIN, 1, inputs=[x], outputs=[y], type_constraints=FLOATS, attributes=clamp),
        defs.OpSchema(
            "Clamp", DOMAIN, 2, "Use Clip of ai.onnx.", inputs=[x], outputs=[y], type_constraints=FLOATS
        ),
    ):
        if hasattr(schema, "set_type_and_shape_inference_function"):  # onnx 1.17 or newer
            schema.set_type_and_shape_inference_function(like_input)
        defs.register_schema(schema)


register()
