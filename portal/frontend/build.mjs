// Bundles what the pages load into portal/static/portal: `node portal/frontend/build.mjs`.
// Everything comes from the installed packages, this folder and portal/pages; nothing is fetched.

import { build } from "esbuild";
import { copyFile, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { dirname, extname, join } from "node:path";
import { fileURLToPath } from "node:url";

const HERE = dirname(fileURLToPath(import.meta.url));
const ROOT = join(HERE, "..", "..");
const OUT = join(HERE, "..", "static", "portal");
const ICONS = join(ROOT, "node_modules", "@tabler", "icons", "icons", "outline");
const ICON_OF_TEMPLATE = /_icon\.html" with name="([a-z0-9-]+)"/g;
const FRAME = /<path stroke="none"[^>]*>/; // invisible, for programs that draw
const DRAWING = /<svg[^>]*>([\s\S]*)<\/svg>/;

// A sprite of the icons that templates and icons.json name, so that no unused icon is loaded.
async function sprite() {
  const names = new Set(JSON.parse(await readFile(join(HERE, "icons.json"), "utf8")));
  for (const name of await readdir(join(ROOT, "templates"), { recursive: true })) {
    if (name.endsWith(".html")) {
      const text = await readFile(join(ROOT, "templates", name), "utf8");
      for (const [, icon] of text.matchAll(ICON_OF_TEMPLATE)) names.add(icon);
    }
  }
  const symbols = [...names].sort().map(async (name) => {
    const text = await readFile(join(ICONS, `${name}.svg`), "utf8");
    const lines = DRAWING.exec(text)[1].replace(FRAME, "").replaceAll(/\s*\n\s*/g, "");
    return `<symbol id="${name}" viewBox="0 0 24 24">${lines}</symbol>`;
  });
  const body = (await Promise.all(symbols)).join("\n");
  return `<svg xmlns="http://www.w3.org/2000/svg">\n${body}\n</svg>\n`;
}

const entries = JSON.parse(await readFile(join(HERE, "entries.json"), "utf8"));
await rm(OUT, { recursive: true, force: true });
await build({
  absWorkingDir: ROOT,
  entryPoints: Object.entries(entries).map(([out, source]) => ({
    in: join(ROOT, source),
    out: out.slice(0, -extname(out).length), // esbuild adds the ending itself
  })),
  outdir: OUT,
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2022",
  loader: { ".woff2": "file" },
  assetNames: "fonts/[name]",
  legalComments: "linked",
  logLevel: "warning",
});
await copyFile(join(HERE, "mark.svg"), join(OUT, "mark.svg"));
await writeFile(join(OUT, "icons.svg"), await sprite());
