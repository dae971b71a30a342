"""One model as protobuf: what it holds, what its bodies see, and the hands that edit it."""
