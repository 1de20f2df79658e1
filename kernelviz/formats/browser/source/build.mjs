// Builds the bundle of plotly.js that kernelviz ships: `npm ci && npm run build` in this folder.
// The same versions give the same bytes, so a build without a change leaves the repository unchanged.
import { build } from "esbuild";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

const { version } = JSON.parse(readFileSync("node_modules/plotly.js/package.json", "utf8"));
const result = await build({
  entryPoints: ["entry.js"],
  bundle: true,
  minify: true,
  write: false,
  metafile: true,
  format: "iife",
  target: "es2022",
  legalComments: "none",
  loader: { ".css": "empty" }, // of maps, which are not in the bundle
  define: { global: "globalThis", "define.amd": "false", "process.env.NODE_DEBUG": "false" },
  banner: { js: `/**\n* plotly.js v${version} (bar, heatmap, scatter)\n* Copyright 2012-2026, Plotly, Inc.\n* All rights reserved.\n`
    + "* Licensed under the MIT license\n*/" },
});
const script = Buffer.from(result.outputFiles[0].contents);
const target = "../plotly.min.js";
writeFileSync(`${target}.br`, brotliCompressSync(script, { params: {
  [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_LGWIN]: 24, [constants.BROTLI_PARAM_SIZE_HINT]: script.length } }));
writeFileSync(`${target}.gz`, gzipSync(script, { level: 9 }));

// The licences of all packages that are in the bundle.
const packages = new Map();
for (const file of Object.keys(result.metafile.inputs)) {
  const folder = file.match(/^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//)?.[1];
  if (!folder || packages.has(folder)) continue;
  const { name, version: packageVersion, license } = JSON.parse(readFileSync(`${folder}/package.json`, "utf8"));
  const text = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
  const words = text ? readFileSync(`${folder}/${text}`, "utf8").trim() : `Licence: ${license}`;
  packages.set(folder, `${name} ${packageVersion}\n\n${words}\n`);
}
writeFileSync(`${target}.licences.txt`, [...packages.values()].sort().join(`\n${"-".repeat(80)}\n\n`));
console.log(`plotly.js ${version}: ${script.length} bytes`);
