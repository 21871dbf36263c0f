"""The parts of a decision's page and its panel: trace, amounts, faults, links, copies; no views."""
