// Stores each delivery with its job in one transaction before Probot answers 200: Probot waits for its handlers, and
// calls them only for bodies whose signature is right. A delivery that is known stays as it is.
//
// DATABASE is `sqlite:PATH` or a PostgreSQL URL; with ONE_STATEMENT a PostgreSQL server is asked once for each delivery
// instead of BEGIN, two INSERTs and COMMIT; everything else comes from Probot's own variables.

import { run } from "probot";

const DELIVERIES = `CREATE TABLE IF NOT EXISTS deliveries (
  id TEXT PRIMARY KEY, event TEXT NOT NULL, action TEXT, repo TEXT, number BIGINT, payload TEXT NOT NULL,
  state TEXT NOT NULL, received_at BIGINT NOT NULL)`;
const JOBS = (id) => `CREATE TABLE IF NOT EXISTS jobs (
  id ${id}, delivery_id TEXT UNIQUE REFERENCES deliveries (id), key TEXT NOT NULL, repo TEXT, kind TEXT NOT NULL,
  state TEXT NOT NULL, attempts BIGINT NOT NULL, run_after BIGINT NOT NULL)`;
const JOBS_IN_ORDER = "CREATE INDEX IF NOT EXISTS jobs_in_order ON jobs (state, run_after, id)";

const database = process.env.DATABASE;
const keep = database.startsWith("sqlite:") ? await inSqlite(database.slice("sqlite:".length)) : await inPostgres(database);

async function inSqlite(path) {
  const { default: Database } = await import("better-sqlite3");
  const db = new Database(path);
  db.pragma("journal_mode = WAL");
  db.pragma("synchronous = FULL");
  db.exec(DELIVERIES);
  db.exec(JOBS("INTEGER PRIMARY KEY"));
  db.exec(JOBS_IN_ORDER);
  const delivery = db.prepare(`INSERT INTO deliveries (id, event, action, repo, number, payload, state, received_at)
    VALUES (?, ?, ?, ?, ?, ?, 'queued', ?) ON CONFLICT (id) DO NOTHING`);
  const job = db.prepare(`INSERT INTO jobs (delivery_id, key, repo, kind, state, attempts, run_after)
    VALUES (?, ?, ?, 'webhook', 'queued', 0, ?)`);
  const both = db.transaction(({ id, event, action, repo, number, payload, key, now }) => {
    if (delivery.run(id, event, action, repo, number, payload, now).changes === 1) {
      job.run(id, key, repo, now);
    }
  });
  return both.immediate;
}

async function inPostgres(url) {
  const { default: pg } = await import("pg");
  const pool = new pg.Pool({ connectionString: url });
  await pool.query(DELIVERIES);
  await pool.query(JOBS("BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"));
  await pool.query(JOBS_IN_ORDER);
  return process.env.ONE_STATEMENT ? inOneStatement(pool) : inTransactions(pool);
}

function inTransactions(pool) {
  const delivery = `INSERT INTO deliveries (id, event, action, repo, number, payload, state, received_at)
    VALUES ($1, $2, $3, $4, $5, $6, 'queued', $7) ON CONFLICT (id) DO NOTHING`;
  const job = `INSERT INTO jobs (delivery_id, key, repo, kind, state, attempts, run_after)
    VALUES ($1, $2, $3, 'webhook', 'queued', 0, $4)`;
  return async ({ id, event, action, repo, number, payload, key, now }) => {
    const client = await pool.connect();
    try {
      await client.query("BEGIN");
      const values = [id, event, action, repo, number, payload, now];
      const { rowCount } = await client.query({ name: "delivery", text: delivery, values });
      if (rowCount === 1) {
        await client.query({ name: "job", text: job, values: [id, key, repo, now] });
      }
      await client.query("COMMIT");
    } catch (error) {
      await client.query("ROLLBACK");
      throw error;
    } finally {
      client.release();
    }
  };
}

async function inOneStatement(pool) {
  // Packing a body would take the server half of its time.
  await pool.query("ALTER TABLE deliveries ALTER COLUMN payload SET STORAGE EXTERNAL");
  const text = `WITH fresh AS (
      INSERT INTO deliveries (id, event, action, repo, number, payload, state, received_at)
      VALUES ($1, $2, $3, $4, $5, $6, 'queued', $8) ON CONFLICT (id) DO NOTHING RETURNING id)
    INSERT INTO jobs (delivery_id, key, repo, kind, state, attempts, run_after)
    SELECT id, $7, $4, 'webhook', 'queued', 0, $8 FROM fresh`;
  return ({ id, event, action, repo, number, payload, key, now }) =>
    pool.query({ name: "keep", text, values: [id, event, action, repo, number, payload, key, now] });
}

run((app) => {
  app.onAny(async ({ id, name, payload }) => {
    const repo = payload.repository?.full_name.toLowerCase() ?? null;
    const number = payload.issue?.number ?? payload.pull_request?.number ?? null;
    const key = repo === null ? `delivery/${id}` : number === null ? repo : `${repo}#${number}`;
    const action = payload.action ?? null;
    await keep({ id, event: name, action, repo, number, payload: JSON.stringify(payload), key, now: Date.now() * 1000 });
  });
});
