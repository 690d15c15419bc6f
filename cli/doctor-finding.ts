import type { Output } from './output.ts'

/** WARN: it works, and may not for long or not well. FAIL: deliveries are not made. */
export type Verdict = 'OK' | 'WARN' | 'FAIL'

/** What one check found; `advice` says what to do where it is not OK. */
export type Finding = { readonly check: string; readonly verdict: Verdict; readonly detail: string; readonly advice: string | null }

export const ok = (check: string, detail: string): Finding => ({ check, verdict: 'OK', detail, advice: null })
export const warn = (check: string, detail: string, advice: string): Finding => ({ check, verdict: 'WARN', detail, advice })
export const fail = (check: string, detail: string, advice: string): Finding => ({ check, verdict: 'FAIL', detail, advice })

const colours = { OK: 'green', WARN: 'yellow', FAIL: 'red' } as const

export function printFindings(output: Output, findings: readonly Finding[]): void {
  output.rows(findings, [
    { title: '', text: ({ verdict }) => verdict, paint: (text, { verdict }) => output.style(colours[verdict], text) },
    { title: 'CHECK', text: ({ check }) => check },
    { title: 'FOUND', text: ({ detail, advice }) => (advice === null ? detail : `${detail}: ${advice}`) },
  ])
}
