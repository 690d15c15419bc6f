/** How a process ends; those from 64 are sysexits.h's, 130 is a shell's. */
export const exitCodes = {
  ok: 0, failed: 1, usage: 2, notFound: 3, conflict: 5, partial: 6, unreachable: 69, timedOut: 75, configuration: 78, interrupted: 130, terminated: 143,
} as const

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes]
