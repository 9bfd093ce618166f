/** Pictures and files for the gallery, made here: it loads nothing from elsewhere. */

/** A picture of some quiet bars, as a data URL. */
export function picture(width: number, height: number, hue: number): string {
  const canvas = document.createElement("canvas");
  canvas.width = width;
  canvas.height = height;
  const context = canvas.getContext("2d");
  if (context) {
    context.fillStyle = `hsl(${hue} 30% 92%)`;
    context.fillRect(0, 0, width, height);
    for (let bar = 0; bar < 12; bar += 1) {
      const tall = height * (0.25 + 0.55 * Math.abs(Math.sin(bar * 1.7 + hue)));
      context.fillStyle = `hsl(${hue} 35% ${38 + bar * 3}%)`;
      context.fillRect(((bar + 0.5) * width) / 13, height - tall, width / 18, tall);
    }
  }
  return canvas.toDataURL("image/png");
}

export const CSV = `data:text/csv;base64,${btoa("mode,bytes\nreplay,1204\ncatch-up,18400\n".repeat(40))}`;
