"""A policy being edited or pasted: draft, sheet, preview, danger, import plan. No page."""
