"""One model as protobuf: its contents, the values that its bodies see, and helpers that edit it."""
