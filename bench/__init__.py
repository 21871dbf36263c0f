"""The benchmark: `python -m bench`; measures the product beside its floors, in one run.

It asks the product from outside, as an API server does; no rule and no product code lives here.
"""
