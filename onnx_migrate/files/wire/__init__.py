"""Reads and writes protobuf as bytes, so that weights can stay in their files."""
