// The focus of the field to write in.

/** The id of the field. */
export const PROMPT_ID = "prompt";

/**
 * Gives the field the focus, after a button that is gone once it was pressed. Not without a keyboard: on a phone the field's own
 * would cover half the page.
 */
export function focusPrompt(): void {
  if (matchMedia("(hover: hover)").matches) document.getElementById(PROMPT_ID)?.focus();
}
