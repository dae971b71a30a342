"""The pass that computes in int32 instead of int64, if ranges prove that nothing overflows."""
