/**
 * The settings of the sample, as the services read them: seconds instead of hours, and what a machine of one's own allows. Nothing of the
 * product knows of the sample; the same names set in a cluster would do the same.
 */
export function sampleEnvironment(names: { readonly topicPrefix: string; readonly groupPrefix: string }): Readonly<Record<string, string>> {
  return {
    POSTHOUSE_TOPIC_PREFIX: names.topicPrefix,
    POSTHOUSE_GROUP_PREFIX: names.groupPrefix,
    // Enough for a process or two of each kind; fewer partitions are made sooner.
    POSTHOUSE_PARTITIONS: '6',
    POSTHOUSE_TIER_PARTITIONS: '2',
    // What was produced before the router was first ready is routed too.
    POSTHOUSE_EVENTS_START: 'earliest',
    // Three attempts, which the flaky endpoint needs; the dead one is given up after 3 s.
    POSTHOUSE_RETRY_SCHEDULE: '1s,2s',
    POSTHOUSE_TIERS: '2s,5s,10s',
    POSTHOUSE_ATTEMPT_TIMEOUT: '10s',
    POSTHOUSE_PARK_DELAYS: '2s,5s,10s',
    // An endpoint that answers after 2 s takes half as many a second; from here its cap grows by one every 2 s.
    POSTHOUSE_ENDPOINT_CAP_START: '64',
    POSTHOUSE_DRAIN_TIMEOUT: '5s',
    POSTHOUSE_ALLOW_HTTP: 'true',
    POSTHOUSE_ALLOW_ADDRESSES: '127.0.0.0/8',
  }
}
