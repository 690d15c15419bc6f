import { formatDuration } from './duration.ts'
import { jitterKinds, resolvePolicy, type Policy, type SubscriptionPolicy } from './policy.ts'
import { worstCaseMs } from './timetable.ts'

const day = 86_400_000

/** Bounds of every number in a policy, ms and counts, both ends included. */
export const policyBounds = {
  waitMs: { min: 1, max: 14 * day },
  maxAttempts: { min: 1, max: 100 },
  timeoutMs: { min: 1_000, max: 30_000 },
} as const

/** From the first attempt to the last at worst, ms: what is still waiting then would expire instead. */
export const maxTotalMs = 14 * day

/**
 * Says everything that is wrong with a subscription's policy under the installation's defaults; empty when it is sound.
 * Each reason names the field and what to do.
 */
export function validatePolicy(own: SubscriptionPolicy, defaults: Policy): string[] {
  const reasons = [...checkFields(own), ...checkStatusClasses(own), ...checkTogether(own, defaults)]
  return reasons.length > 0 ? reasons : checkTotal(resolvePolicy(own, defaults))
}

/** The same for a whole policy, such as an installation's defaults; its schedule must have `maxAttempts - 1` waits. */
export function validateDefaults(policy: Policy): string[] {
  const statusClasses = [...policy.statusClasses].map(([status, failureClass]) => ({ status, failureClass }))
  const own: SubscriptionPolicy = { ...policy, statusClasses, scheduleMs: policy.strategy === 'standard' ? policy.scheduleMs : null }
  return validatePolicy(own, policy)
}

function checkFields(own: SubscriptionPolicy): string[] {
  const reasons: string[] = []
  const check = (name: string, value: number | null, { min, max }: { min: number; max: number }, write: (n: number) => string) => {
    if (value !== null && (!Number.isSafeInteger(value) || value < min || value > max)) {
      reasons.push(`${name} must be a whole number from ${write(min)} to ${write(max)}`)
    }
  }
  if (own.strategy !== null && own.strategy !== 'standard' && own.strategy !== 'exponential') reasons.push('strategy must be standard or exponential')
  if (own.jitter !== null && !jitterKinds.includes(own.jitter)) reasons.push(`jitter must be one of ${jitterKinds.join(', ')}`)
  check('baseMs', own.baseMs, policyBounds.waitMs, formatDuration)
  check('maxMs', own.maxMs, policyBounds.waitMs, formatDuration)
  check('maxAttempts', own.maxAttempts, policyBounds.maxAttempts, String)
  check('timeoutMs', own.timeoutMs, policyBounds.timeoutMs, formatDuration)
  const schedule = own.scheduleMs ?? []
  if (schedule.length >= policyBounds.maxAttempts.max) reasons.push(`scheduleMs must have at most ${policyBounds.maxAttempts.max - 1} waits`)
  else for (const [index, wait] of schedule.entries()) check(`scheduleMs[${index}]`, wait, policyBounds.waitMs, formatDuration)
  return reasons
}

function checkStatusClasses({ statusClasses }: SubscriptionPolicy): string[] {
  const reasons: string[] = []
  const seen = new Set<number>()
  for (const { status, failureClass } of statusClasses) {
    if (!Number.isInteger(status) || status < 100 || status > 599) reasons.push(`statusClasses: ${status} is not a status from 100 to 599`)
    else if (status >= 200 && status <= 299) reasons.push(`statusClasses: ${status} is a success and cannot be made a failure`)
    if (seen.has(status)) reasons.push(`statusClasses: ${status} is given twice`)
    if (!['retriable', 'ambiguous', 'permanent'].includes(failureClass)) reasons.push(`statusClasses: ${status} must be retriable, ambiguous or permanent`)
    seen.add(status)
  }
  return reasons
}

function checkTogether(own: SubscriptionPolicy, defaults: Policy): string[] {
  const reasons: string[] = []
  const strategy = own.strategy ?? defaults.strategy
  const [base, max] = [own.baseMs ?? defaults.baseMs, own.maxMs ?? defaults.maxMs]
  if (own.baseMs !== null && base > max) reasons.push(`baseMs (${formatDuration(base)}) is more than maxMs (${formatDuration(max)})`)
  if (strategy === 'exponential') {
    if (own.scheduleMs !== null) reasons.push('scheduleMs has no effect with strategy exponential: leave it out, or use strategy standard')
    return reasons
  }
  const waits = (own.scheduleMs ?? defaults.scheduleMs).length
  const attempts = own.maxAttempts
  if (attempts !== null && (own.scheduleMs === null ? attempts - 1 > waits : attempts - 1 !== waits)) {
    reasons.push(`maxAttempts ${attempts} needs ${attempts - 1} waits, the schedule has ${waits}: give scheduleMs alone, or as many waits`)
  }
  return reasons
}

function checkTotal(policy: Policy): string[] {
  const total = worstCaseMs(policy)
  if (total <= maxTotalMs) return []
  return [`all attempts would take up to ${inHours(total)}, more than ${formatDuration(maxTotalMs)}: fewer attempts or shorter waits`]
}

/** Rounded up. */
const inHours = (ms: number): string => formatDuration(Math.ceil(ms / 3_600_000) * 3_600_000)

/**
 * What is allowed, but will not do what its writer may expect; empty where there is nothing to say. `expiryMs`: age at which the
 * installation gives a delivery up.
 */
export function policyNotes(own: SubscriptionPolicy, defaults: Policy, expiryMs: number): string[] {
  const policy = resolvePolicy(own, defaults)
  const isDecorrelated = policy.jitter === 'decorrelated'
  const notes: string[] = []
  if (policy.strategy === 'standard' && !isDecorrelated && (own.baseMs !== null || own.maxMs !== null)) {
    notes.push('baseMs and maxMs have no effect: they are for strategy exponential and for jitter decorrelated')
  }
  if (isDecorrelated && own.scheduleMs !== null) {
    notes.push('jitter decorrelated makes waits of baseMs and maxMs: of the schedule only the number of waits counts')
  }
  if (isDecorrelated && own.adaptive === true) notes.push('adaptive has no effect: jitter decorrelated makes waits of the last wait alone')
  const atWorst = worstCaseMs(policy)
  if (atWorst > expiryMs) {
    notes.push(`all attempts may take up to ${inHours(atWorst)}, but a delivery is given up after ${formatDuration(expiryMs)}: the last ones may never be made`)
  }
  const gone = policy.statusClasses.get(410)
  if (gone !== undefined && gone !== 'permanent') notes.push(`410 is ${gone}: it does not end the subscription's deliveries any more`)
  return notes
}
