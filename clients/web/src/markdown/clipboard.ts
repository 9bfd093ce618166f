/** Put a text on the clipboard, also where the page has no safe origin. */
export async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    area.style.position = "fixed";
    area.style.opacity = "0";
    const focused = document.activeElement;
    document.body.append(area);
    area.select();
    const done = document.execCommand?.("copy") ?? false;
    area.remove();
    if (focused instanceof HTMLElement) {
      focused.focus();
    }
    return done;
  }
}
