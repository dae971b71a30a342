"""Dims that become dynamic or fixed: what users write, the plan that it resolves to, and expressions of symbols."""
