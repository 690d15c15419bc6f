#!/usr/bin/env node
// Plain JavaScript that old versions of Node can read too, so that they can say what is missing. Everything else is TypeScript.
const oldest = 24
const present = process.versions.node

if (Number(present.split('.')[0]) >= oldest) {
  await import('./main.ts')
} else {
  process.stderr.write(
    `posthouse: this is Node.js ${present}, and posthouse needs Node.js ${oldest} or newer. ` +
    `In the project's folder "npm ci" brings it along on Linux (x64, arm64), and "npx posthouse" then uses it; elsewhere install Node.js ${oldest}.\n`,
  )
  process.exitCode = 78
}
