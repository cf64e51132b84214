// What every page of an example has to be, in a narrow window and in a wide one, in light and in dark.
import assert from "node:assert/strict";
import { mkdir, readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { repository } from "./project.mjs";

const axe = createRequire(join(repository, "www/package.json")).resolve("axe-core/axe.min.js");
const screenshots = join(repository, "dist/screenshots");

/**
 * Fails when axe-core finds anything or the page is wider than its window. Leaves pictures in dist/screenshots.
 *
 * @param {import("playwright-core").Page} page
 * @param {string} name what is shown, for the names of the pictures
 */
export async function isAccessible(page, name) {
  const source = await readFile(axe, "utf8");
  await mkdir(screenshots, { recursive: true });
  for (const width of [1280, 390]) {
    await page.setViewportSize({ width, height: 844 });
    for (const colorScheme of ["dark", "light"]) {
      await page.emulateMedia({ colorScheme });
      await page.evaluate(source);
      const { violations } = await page.evaluate(() => globalThis.axe.run());
      assert.deepEqual(
        violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`),
        [],
        `${name} at ${width} pixels, ${colorScheme}`,
      );
      await page.screenshot({ path: join(screenshots, `${name}-${width}-${colorScheme}.png`) });
    }
    const beside = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(beside <= 0, `${name}: ${beside} pixels are beside the page at ${width}`);
  }
}
