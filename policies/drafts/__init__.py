"""A policy being edited or pasted: draft, sheet, merge, preview, danger, import plan. No page."""
