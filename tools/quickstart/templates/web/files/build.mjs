import { mkdirSync, readFileSync, writeFileSync } from "node:fs";

const words = JSON.parse(readFileSync("words.json"));
mkdirSync("dist", { recursive: true });
writeFileSync("dist/main.mjs", `console.log(${JSON.stringify(words.join(" "))});\n`);
console.log(`dist/main.mjs from ${words.length} words, by node ${process.version}`);
