// Dialogs of the editor: save with a reason, delete. Without scripts they stand below the panes.

function offerClose(dialog) {
  for (const button of dialog.querySelectorAll("[data-close-dialog]")) {
    button.addEventListener("click", () => dialog.close());
  }
}

export function offerDialogs(editor) {
  for (const dialog of document.querySelectorAll(".edit-dialog")) offerClose(dialog);
  document.addEventListener("click", (event) => {
    const opener = event.target.closest("[data-dialog]");
    const dialog = opener && document.getElementById(opener.dataset.dialog);
    if (!dialog) return;
    event.preventDefault();
    opener.closest("details[data-menu]")?.removeAttribute("open");
    dialog.showModal();
    dialog.querySelector("input:not([type=hidden]), textarea")?.focus();
  });
  const save = editor.querySelector("[data-save-dialog]");
  save?.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    if (!event.target.matches("input, textarea")) return;
    event.preventDefault();
    editor.requestSubmit(save.querySelector("[data-confirm-save]"));
  });
  // A deletion that was refused says what it still needs.
  document.querySelector("#delete-dialog:has([data-asked])")?.showModal();
  return {
    // Opens the dialog where the server has answered what saving would do.
    ask() {
      const body = save?.querySelector("#save-body[data-asked]");
      if (!body) return;
      delete body.dataset.asked;
      if (!save.open) save.showModal();
      save.querySelector(save.querySelector("#confirm") && save.querySelector("#reason").value ? "#confirm" : "#reason").focus();
    },
  };
}
