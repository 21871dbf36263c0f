"""The honest baseline: one ORM transaction for each review, as one writes it first.

`atomic`, `select_for_update`, `save`, `create`, on the product's own models and engine. It must
come to the product's verdicts, or its load does not count. Two forms: `load` reads the policies
for each review, `cached` keeps them in memory and reads only the cluster's revision. The goals
are held against the faster one.
"""
