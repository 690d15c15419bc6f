import packageJson from '../package.json' with { type: 'json' }

/** Version of posthouse, as in the User-Agent and the build info metric. */
export const version: string = packageJson.version
