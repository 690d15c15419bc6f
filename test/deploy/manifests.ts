import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseAllDocuments } from 'yaml'
import { ScaledObject } from '@kubernetes-models/keda/keda.sh/v1alpha1'
import { Deployment } from 'kubernetes-models/apps/v1'
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1'
import { ConfigMap, Secret, Service } from 'kubernetes-models/v1'
import { projectRoot } from '../../deploy/dev/folders.ts'

export type Manifest = {
  readonly file: string
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string; readonly labels?: Readonly<Record<string, string>> }
  readonly [field: string]: unknown
}

const folder = join(projectRoot, 'deploy/kubernetes')

/** Every resource in `deploy/kubernetes`, as YAML has it. */
export const manifests: readonly Manifest[] = readdirSync(folder).filter((file) => file.endsWith('.yaml')).sort().flatMap((file) =>
  parseAllDocuments(readFileSync(join(folder, file), 'utf8')).map((document) => {
    if (document.errors.length > 0) throw new Error(`${file}: ${document.errors.join('; ')}`)
    return { ...document.toJS({ maxAliasCount: 100 }) as Omit<Manifest, 'file'>, file } as Manifest
  }))

/** What a schema can be had of. A kustomization and Strimzi's topics are looked at by tests of their own. */
const models = [Deployment, PodDisruptionBudget, ConfigMap, Secret, Service, ScaledObject]

/** What is wrong with a resource by its schema, fields that the schema does not know included; null: there is no schema of it. */
export function schemaFaults({ file, ...resource }: Manifest): readonly string[] | null {
  const Model = models.find(({ apiVersion, kind }) => apiVersion === resource.apiVersion && kind === resource.kind)
  if (!Model) return null
  const unread = new Set<string>()
  const faults: string[] = []
  try {
    // Without an object of the model, which would copy it and so have read it all.
    Model.prototype.validate.call(watched(resource, '', unread) as InstanceType<typeof Model>)
  } catch (error) {
    faults.push((error as Error).message)
  }
  return [...faults, ...[...unread].map((path) => `${path} is no field`)].map((fault) => `${file} ${resource.metadata.name}: ${fault}`)
}

/**
 * A value that notes which of its fields are never read. The API server drops fields it does not know, so that a slip of the pen goes
 * unnoticed; the schemas allow them. But a schema looks at every field that it knows.
 */
function watched(value: unknown, path: string, unread: Set<string>): unknown {
  if (typeof value !== 'object' || value === null) return value
  const children = new Map(Object.entries(value).map(([name, child]) => [name, watched(child, `${path}/${name}`, unread)]))
  for (const name of children.keys()) unread.add(`${path}/${name}`)
  return new Proxy(value, {
    get(target, name, receiver) {
      if (typeof name !== 'string' || !children.has(name)) return Reflect.get(target, name, receiver) as unknown
      unread.delete(`${path}/${name}`)
      return children.get(name)
    },
  })
}
