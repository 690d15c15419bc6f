import type { ClaimResult, Store } from './store.ts'

/**
 * A pool or client of `pg`, or anything like it. Each call must be a transaction of its own, at READ COMMITTED (the default): a
 * claim that others do not see at once is none. Only `finish` may be called in a transaction of yours, see the README.
 */
export type PostgresClient = {
  query(text: string, params: unknown[]): Promise<{ readonly rows: readonly unknown[] }>
}

export type PostgresStoreOptions = {
  /** Default `webhook_claims`; may be `schema.table`. */
  readonly table?: string
}

export type PostgresStore = Store & {
  /**
   * Deletes rows whose ttl is over, at most `limit` (default 1,000), and returns how many. Nothing depends on it but the size of
   * the table: call it from time to time, again at once while it returns as many as the limit.
   */
  deleteExpired(limit?: number): Promise<number>
}

const defaultTable = 'webhook_claims'

/** The SQL that creates the table. Run it with your migrations; running it again changes nothing. */
export function createTableSql(table: string = defaultTable): string {
  const name = checkedName(table)
  return `CREATE TABLE IF NOT EXISTS ${name} (
  key text PRIMARY KEY,
  fingerprint text,                 -- null: released
  request_id text NOT NULL,
  token bigint NOT NULL,            -- grows with each claim of the key
  claimed_at timestamptz NOT NULL,
  lock_until timestamptz NOT NULL,
  expires_at timestamptz NOT NULL,
  status smallint,                  -- null: not finished
  content_type text,
  body bytea
);
CREATE INDEX IF NOT EXISTS ${name.split('.').at(-1)}_expires_at ON ${name} (expires_at);
`
}

/**
 * Keeps claims in a table of yours (`createTableSql`), by a pool or client of yours. Every race is settled by the row's lock, and
 * the database's clock decides what is over, so that processes whose clocks differ agree.
 */
export function postgresStore(client: PostgresClient, { table = defaultTable }: PostgresStoreOptions = {}): PostgresStore {
  const sql = statements(checkedName(table))
  return {
    claim: async ({ key, fingerprint, requestId, lockMs, ttlMs }) => {
      for (let tries = 0; tries < 10; tries += 1) {
        const { rows } = await client.query(sql.claim, [key, fingerprint, requestId, lockMs, ttlMs])
        const result = claimResultOf(rows[0] as ClaimRow | undefined)
        if (result !== null) return result
      }
      throw new Error(`the claim of ${key} was lost to another ten times in a row: is the client in a transaction that sees an old snapshot?`)
    },
    finish: async ({ key, token, ttlMs }, { status, contentType, body }) => {
      const encoded = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('base64')
      const { rows } = await client.query(sql.finish, [key, token, ttlMs, status, contentType, encoded])
      return rows.length > 0
    },
    release: async ({ key, token }) => {
      const { rows } = await client.query(sql.release, [key, token])
      return rows.length > 0
    },
    deleteExpired: async (limit = 1_000) => {
      const { rows } = await client.query(sql.deleteExpired, [limit])
      return rows.length
    },
  }
}

/** All text or small numbers, so that it does not matter how a client reads bigint and bytea. */
type ClaimRow = {
  readonly state: 'claimed' | 'running' | 'finished' | 'conflict' | 'again'
  readonly request_id: string
  readonly token: string
  readonly retry_after_ms: string
  readonly status: string | null
  readonly content_type: string | null
  readonly body: string | null
}

/** Null: the row changed between the two halves of the statement; ask again. */
function claimResultOf(row: ClaimRow | undefined): ClaimResult | null {
  if (row === undefined || row.state === 'again') return null
  const { state, request_id: requestId } = row
  if (state === 'claimed') return { state, token: Number(row.token) }
  if (state === 'running') return { state, requestId, retryAfterMs: Number(row.retry_after_ms) }
  if (state === 'conflict') return { state, requestId }
  return { state, requestId, answer: { status: Number(row.status), contentType: row.content_type, body: Buffer.from(row.body ?? '', 'base64') } }
}

/**
 * `statement_timestamp()` throughout: one time in a statement, and where it had to wait for the row an early one, which takes no
 * lock for over that is not. Tokens are microseconds since 1970, or one more than the last: they grow also over a row that was
 * deleted, and are exact in a JavaScript number until 2255.
 */
function statements(table: string) {
  return {
    claim: `
WITH claimed AS (
  INSERT INTO ${table} AS held (key, fingerprint, request_id, token, claimed_at, lock_until, expires_at)
  VALUES (
    $1::text, $2::text, $3::text, (extract(epoch FROM statement_timestamp()) * 1000000)::bigint, statement_timestamp(),
    statement_timestamp() + $4::float8 * interval '1 millisecond', statement_timestamp() + $5::float8 * interval '1 millisecond'
  )
  ON CONFLICT (key) DO UPDATE SET
    fingerprint = excluded.fingerprint, request_id = excluded.request_id, token = greatest(held.token + 1, excluded.token),
    claimed_at = excluded.claimed_at, lock_until = excluded.lock_until, expires_at = excluded.expires_at,
    status = NULL, content_type = NULL, body = NULL
  WHERE held.expires_at <= statement_timestamp()
    OR held.fingerprint IS NULL
    OR held.status IS NULL AND held.lock_until <= statement_timestamp() AND held.fingerprint = excluded.fingerprint
  RETURNING token
)
SELECT 'claimed' AS state, $3::text AS request_id, token::text, NULL AS retry_after_ms, NULL AS status, NULL AS content_type, NULL AS body
FROM claimed
UNION ALL
SELECT
  CASE
    -- As it was when the statement began. What was free then and is not ours was taken in between.
    WHEN expires_at <= statement_timestamp() OR fingerprint IS NULL THEN 'again'
    WHEN fingerprint <> $2::text THEN 'conflict'
    WHEN status IS NOT NULL THEN 'finished'
    WHEN lock_until > statement_timestamp() THEN 'running'
    ELSE 'again'
  END,
  request_id, token::text, (extract(epoch FROM lock_until - statement_timestamp()) * 1000)::text,
  status::text, content_type, encode(body, 'base64')
FROM ${table}
WHERE key = $1::text AND NOT EXISTS (SELECT FROM claimed)`,

    finish: `
UPDATE ${table} SET
  status = $4::smallint, content_type = $5::text, body = decode($6::text, 'base64'),
  expires_at = statement_timestamp() + $3::float8 * interval '1 millisecond'
WHERE key = $1::text AND token = $2::bigint AND fingerprint IS NOT NULL AND expires_at > statement_timestamp()
RETURNING key`,

    // The row stays, and with it the last token.
    release: `
UPDATE ${table} SET fingerprint = NULL
WHERE key = $1::text AND token = $2::bigint AND fingerprint IS NOT NULL AND status IS NULL AND expires_at > statement_timestamp()
RETURNING key`,

    deleteExpired: `
DELETE FROM ${table} WHERE key IN (
  SELECT key FROM ${table} WHERE expires_at <= statement_timestamp() ORDER BY expires_at LIMIT $1::bigint FOR UPDATE SKIP LOCKED
)
RETURNING key`,
  }
}

/** It becomes part of SQL, so nothing but plain names. */
function checkedName(table: string): string {
  if (/^[a-z_][a-z0-9_]{0,50}(\.[a-z_][a-z0-9_]{0,50})?$/.test(table)) return table
  throw new TypeError(`the table name ${JSON.stringify(table)} is not lower-case letters, digits and underscores, with a schema before a dot or not`)
}
