// Builds the bundle of CodeMirror that kernelviz ships: `npm ci --ignore-scripts && npm run build` in this folder.
// The same versions give the same bytes, so a build without a change leaves the repository unchanged.
import { build } from "esbuild";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

const { dependencies } = JSON.parse(readFileSync("package.json", "utf8"));
const names = Object.entries(dependencies).map(([name, version]) => `${name} ${version}`).join(", ");
const result = await build({
  entryPoints: ["entry.js"],
  bundle: true,
  minify: true,
  write: false,
  metafile: true,
  format: "iife",
  target: "es2022",
  legalComments: "none",
  banner: { js: `/* CodeMirror 6: ${names}. MIT licence, Copyright (C) by Marijn Haverbeke and others. */` },
});
const script = Buffer.from(result.outputFiles[0].contents);
const target = "../../codemirror.min.js";
writeFileSync(`${target}.br`, brotliCompressSync(script, { params: {
  [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_LGWIN]: 24, [constants.BROTLI_PARAM_SIZE_HINT]: script.length } }));
writeFileSync(`${target}.gz`, gzipSync(script, { level: 9 }));

// The licences of all packages that are in the bundle.
const packages = new Map();
for (const file of Object.keys(result.metafile.inputs)) {
  const folder = file.match(/^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//)?.[1];
  if (!folder || packages.has(folder)) continue;
  const { name, version, license } = JSON.parse(readFileSync(`${folder}/package.json`, "utf8"));
  const text = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
  const words = text ? readFileSync(`${folder}/${text}`, "utf8").trim() : `Licence: ${license}`;
  packages.set(folder, `${name} ${version}\n\n${words}\n`);
}
writeFileSync(`${target}.licences.txt`, [...packages.values()].sort().join(`\n${"-".repeat(80)}\n\n`));
console.log(`CodeMirror: ${script.length} bytes`);
