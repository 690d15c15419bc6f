import type { Environment } from './config.ts'
import { settings, type Setting } from './settings.ts'

export type ConfigRow = {
  readonly name: string
  /** As it would be written in the environment; secrets as `[set]`; what happens without it, in brackets, where there is no default. */
  readonly value: string
  readonly source: 'default' | 'environment'
  readonly doc: string
  readonly usedBy: readonly string[] | 'all'
}

/** Every setting with its value and where that comes from, for people; nothing secret is in it. Values are shown as typed, valid or not. */
export const printConfig = (env: Environment): readonly ConfigRow[] =>
  (Object.values(settings) as Setting<unknown>[]).map(({ name, defaultText, whenUnset, isSecret, doc, usedBy }) => {
    const text = env[name]?.trim()
    if (!text) return { name, value: defaultText ?? `(${whenUnset})`, source: 'default', doc, usedBy }
    return { name, value: isSecret ? '[set]' : text, source: 'environment', doc, usedBy }
  })
