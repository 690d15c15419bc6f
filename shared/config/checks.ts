import { formatDuration } from '../domain/duration.ts'
import { maxTotalMs } from '../domain/policy-check.ts'
import { worstCaseMs } from '../domain/timetable.ts'
import { defaultPolicyOf } from './default-policy.ts'
import type { Report } from './files.ts'
import type { Values } from './settings.ts'

/** Settings that are right one by one and wrong together (`report`), or allowed but risky (`warn`). */
export const checkTogether = (values: Values, report: Report, warn: Report): void => {
  checkTiers(values, report, warn)
  checkRetries(values, report, warn)
  checkDelivery(values, report, warn)
  if (values.eventTypeConstant !== null && values.eventTypeFromTopic) {
    report('POSTHOUSE_EVENT_TYPE_CONSTANT and POSTHOUSE_EVENT_TYPE_FROM_TOPIC exclude each other: an event has one type, so keep one of them')
  }
}

const checkTiers = ({ tiers, servedTiers }: Values, report: Report, warn: Report): void => {
  if (tiers.length < 2) report('POSTHOUSE_TIERS has one tier: give at least two, so that waits of different lengths do not stand in one line')
  tiers.forEach((tierMs, index) => {
    const previousMs = tiers[index - 1]
    if (previousMs !== undefined && tierMs <= previousMs) {
      report(`POSTHOUSE_TIERS has ${formatDuration(tierMs)} after ${formatDuration(previousMs)}: list the delays from the shortest to the longest`)
    }
  })
  const names = new Set(['soon', ...tiers.map(formatDuration)])
  for (const tier of servedTiers ?? []) {
    // Rightly set while a tier that was taken out of POSTHOUSE_TIERS is still emptied.
    if (!names.has(tier)) warn(`POSTHOUSE_RETRY_TIERS has ${tier}, which POSTHOUSE_TIERS has not: only what already waits there will come out`)
  }
}

const checkRetries = (values: Values, report: Report, warn: Report): void => {
  const { retryStrategy, retrySchedule, retryMaxAttempts, retryBase, retryMax, deliveryExpiry } = values
  if (retryStrategy === 'standard' && retryMaxAttempts !== null && retryMaxAttempts > retrySchedule.length + 1) {
    report(`POSTHOUSE_RETRY_MAX_ATTEMPTS is ${retryMaxAttempts} but POSTHOUSE_RETRY_SCHEDULE has ${retrySchedule.length} waits, ` +
      `enough for ${retrySchedule.length + 1} attempts: add waits or take fewer attempts`)
  }
  if (retryBase > retryMax) {
    report(`POSTHOUSE_RETRY_BASE (${formatDuration(retryBase)}) is longer than POSTHOUSE_RETRY_MAX (${formatDuration(retryMax)}): the first wait cannot be longer than the longest`)
  }
  const longestMs = worstCaseMs(defaultPolicyOf(values))
  const inDays = `${(longestMs / 86_400_000).toFixed(1)} days`
  if (longestMs > maxTotalMs) {
    report(`the retries of the default policy may take ${inDays}, more than the 14 days topics have room for: shorten POSTHOUSE_RETRY_SCHEDULE, POSTHOUSE_RETRY_MAX or POSTHOUSE_RETRY_MAX_ATTEMPTS`)
  } else if (longestMs > deliveryExpiry) {
    warn(`the retries of the default policy may take ${inDays}, but deliveries are given up after POSTHOUSE_DELIVERY_EXPIRY (${formatDuration(deliveryExpiry)}): the last attempts may never be made`)
  }
}

const checkDelivery = (values: Values, report: Report, warn: Report): void => {
  const { endpointCapStart, endpointCapMax, maxInFlight, drainTimeout, attemptTimeout, allowHttp } = values
  if (endpointCapStart > endpointCapMax) {
    report(`POSTHOUSE_ENDPOINT_CAP_START (${endpointCapStart}) is more than POSTHOUSE_ENDPOINT_CAP_MAX (${endpointCapMax}): begin at or below the most`)
  }
  if (endpointCapMax >= maxInFlight) {
    warn(`POSTHOUSE_ENDPOINT_CAP_MAX (${endpointCapMax}) is not below POSTHOUSE_MAX_IN_FLIGHT (${maxInFlight}): one slow endpoint may take every request there is`)
  }
  if (drainTimeout < attemptTimeout) {
    warn(`POSTHOUSE_DRAIN_TIMEOUT (${formatDuration(drainTimeout)}) is shorter than POSTHOUSE_ATTEMPT_TIMEOUT (${formatDuration(attemptTimeout)}): a stop cuts slow requests off, and they are made again`)
  }
  if (allowHttp) warn('POSTHOUSE_ALLOW_HTTP is true: deliveries to http: endpoints travel unencrypted')
}
