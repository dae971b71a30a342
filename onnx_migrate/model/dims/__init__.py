"""Dims that become dynamic or fixed: the requests of users, the plans that follow from them, and expressions of symbols."""
