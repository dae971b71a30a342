"""Protobuf read and written as bytes, so that weights can stay where they are."""
