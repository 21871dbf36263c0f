// Two versions of a policy beside each other: theirs on the left, the merged one on the right.

import { MergeView } from "@codemirror/merge";
import { EditorView } from "@codemirror/view";
import { yamlEditor } from "./workbench/yaml.js";

const form = document.querySelector("[data-merge]");
const field = form.querySelector("#yaml");
const nonce = form.dataset.nonce;
const views = new MergeView({
  a: {
    doc: form.querySelector('[name="shown"]').value,
    extensions: [...yamlEditor(nonce, () => {}), EditorView.editable.of(false)],
  },
  b: {
    doc: field.value,
    extensions: yamlEditor(nonce, (update) => {
      field.value = update.state.doc.toString();
    }),
  },
  gutter: true,
});
field.hidden = true;
field.after(views.dom);
