"""Writes quantised operators as pairs of QuantizeLinear and DequantizeLinear, or as floats."""
