"""The benchmark: asks the product from outside, beside its floors; no product code lives here."""
