// What every editor of YAML has. Not CodeMirror's basic setup: its search and its completion are
// 20 kB that no page needs.

import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { yaml } from "@codemirror/lang-yaml";
import { bracketMatching, foldGutter, indentOnInput } from "@codemirror/language";
import { lintGutter } from "@codemirror/lint";
import {
  EditorView,
  drawSelection,
  highlightActiveLine,
  highlightActiveLineGutter,
  keymap,
  lineNumbers,
} from "@codemirror/view";
import { colours, replaced } from "./colours.js";

const LABEL = EditorView.contentAttributes.of({ "aria-label": "YAML", spellcheck: "false", tabindex: "0" });

export function yamlEditor(nonce, onTyped) {
  return [
    lineNumbers(),
    highlightActiveLineGutter(),
    highlightActiveLine(),
    history(),
    foldGutter(),
    drawSelection(),
    indentOnInput(),
    bracketMatching(),
    keymap.of([...defaultKeymap, ...historyKeymap]),
    yaml(),
    colours,
    replaced,
    lintGutter(),
    LABEL,
    EditorView.lineWrapping,
    EditorView.cspNonce.of(nonce),
    EditorView.updateListener.of((update) => update.docChanged && onTyped(update)),
  ];
}
