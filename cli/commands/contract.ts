import type { Command } from 'commander'
import type { Config } from '../../shared/config/config.ts'
import { createContract, type ContractSubject, type RetryContract } from '../../shared/contract/contract.ts'
import { contractToMarkdown } from '../../shared/contract/markdown.ts'
import { resolvePolicy, type Policy } from '../../shared/domain/policy.ts'
import type { SignatureScheme, StoredSubscription } from '../../shared/domain/subscription.ts'
import { topicNames } from '../../shared/kafka/topics.ts'
import { hostOf } from '../../shared/subscriptions/view.ts'
import { version } from '../../shared/version.ts'
import { act, addCommand } from '../command.ts'
import type { Context } from '../context.ts'
import { catalogueOf, withKafka } from '../kafka-session.ts'
import { announcement, effectiveEnvironment, readSettings } from '../settings.ts'
import { findSubscription, openSubscriptions } from '../subscription-session.ts'

const help = `
Without --subscription it needs no Kafka: it is what a subscription gets that sets nothing for itself, by the settings in the environment.
The form of the JSON is in schemas/contract.schema.json.`

export function addContractCommand(program: Command): void {
  addCommand(program, 'contract', 'print the retry contract in force, as Markdown or JSON: what a status means, when attempts come, what is kept')
    .option('--subscription <id>', 'of this subscription, with the policy it has now')
    .addHelpText('after', help)
    .action(act(contract))
}

async function contract(context: Context, { subscription: id }: { readonly subscription?: string }): Promise<void> {
  if (id === undefined) {
    const effective = effectiveEnvironment()
    if (effective.local) context.output.warn(announcement(effective.local))
    const { config } = readSettings(effective, { requireKafka: false })
    return print(context, contractOf(config, { kind: 'defaults' }, config.policy, 'stripe'))
  }
  await withKafka(context, async (kafka) => {
    const found = findSubscription(await openSubscriptions(context, kafka), id)
    print(context, contractOf(kafka.config, subjectOf(found), resolvePolicy(found.policy, kafka.config.policy), found.signatureScheme))
  })
}

/** Markdown is the format for people, so it stands where other commands have a table. */
function print({ output }: Context, contract: RetryContract): void {
  if (output.format === 'table') output.text(contractToMarkdown(contract))
  else output.record(contract, [])
}

function subjectOf({ id, tenant, url, endpointKey, eventTypes, state }: StoredSubscription): ContractSubject {
  return { kind: 'subscription', id, tenant, host: hostOf(url), endpointKey, eventTypes, state }
}

/** Also for tests: what the settings make of a policy. */
export function contractOf(config: Config, subject: ContractSubject, policy: Policy, scheme: SignatureScheme): RetryContract {
  const names = topicNames(config.topics.prefix)
  const retentionMs = catalogueOf(config).find(({ name }) => name === names.dlq)?.config['retention.ms']
  return createContract({
    version, subject, policy, scheme,
    expiryMs: config.deliveryExpiryMs, tiersMs: config.tiersMs,
    endpointCap: { start: config.delivery.endpointCapStart, most: config.delivery.endpointCapMax },
    topics: {
      attempts: names.attempts, dlq: names.dlq, health: names.endpointHealth, deliveries: names.deliveries, retryPrefix: names.retry(''),
      subscriptions: names.subscriptions,
    },
    deadLettersKeptMs: Number(retentionMs),
  })
}
