// Colours of YAML by the classes of editor.css, as in texts that the server renders.

import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { tags } from "@lezer/highlight";
import { EditorView } from "@codemirror/view";

const style = HighlightStyle.define([
  { tag: tags.propertyName, class: "yaml-key" },
  { tag: [tags.content, tags.string], class: "yaml-value" },
  { tag: tags.comment, class: "yaml-comment" },
]);

export const colours = syntaxHighlighting(style);

// A browser writes the colours of selected text into what takes its place, as styles of its own,
// which the content security policy forbids: the editor replaces the text itself.
export const replaced = EditorView.domEventHandlers({
  beforeinput(event, view) {
    const selection = getSelection();
    const range = event.getTargetRanges?.()[0] ?? (selection.rangeCount ? selection.getRangeAt(0) : null);
    if (event.inputType !== "insertText" || event.data === null || !range || range.collapsed || view.composing) return false;
    const from = view.posAtDOM(range.startContainer, range.startOffset);
    const to = view.posAtDOM(range.endContainer, range.endOffset);
    event.preventDefault();
    view.dispatch({ changes: { from, to, insert: event.data }, selection: { anchor: from + event.data.length }, userEvent: "input.type" });
    return true;
  },
});
