// Asks before a form with data-confirm is sent. Without scripts it is sent at once.

function ask(question, label, go) {
  const dialog = document.createElement("dialog");
  const words = document.createElement("p");
  const row = document.createElement("div");
  const [back, yes] = ["Go back", label].map((text) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = text;
    row.append(button);
    return button;
  });
  words.id = "question";
  words.textContent = question;
  row.className = "row";
  yes.className = "primary";
  dialog.setAttribute("aria-labelledby", words.id);
  dialog.append(words, row);
  back.addEventListener("click", () => dialog.close());
  yes.addEventListener("click", () => {
    dialog.close();
    go();
  });
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

export function offerQuestions() {
  document.addEventListener("submit", (event) => {
    const form = event.target;
    const button = event.submitter;
    const question = button?.dataset.confirm || form.dataset.confirm;
    if (!question || form.dataset.sure) return;
    event.preventDefault();
    ask(question, button?.textContent || "Yes", () => {
      form.dataset.sure = "yes";
      form.requestSubmit(button);
    });
  });
}
