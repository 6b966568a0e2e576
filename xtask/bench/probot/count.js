// How many deliveries and jobs a database holds, Canonry's or the app's: the tables are named alike.

const database = process.argv[2];
const count = "SELECT (SELECT count(*) FROM deliveries) AS deliveries, (SELECT count(*) FROM jobs) AS jobs";

let row;
if (database.startsWith("sqlite:")) {
  const { default: Database } = await import("better-sqlite3");
  row = new Database(database.slice("sqlite:".length), { readonly: true }).prepare(count).get();
} else {
  const { default: pg } = await import("pg");
  const client = new pg.Client({ connectionString: database });
  await client.connect();
  row = (await client.query(count)).rows[0];
  await client.end();
}
console.log(JSON.stringify({ deliveries: Number(row.deliveries), jobs: Number(row.jobs) }));
