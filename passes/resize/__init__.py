"""The passes that choose the form of each Resize, and the facts they need: lengths, scales, the exporter's intent."""
