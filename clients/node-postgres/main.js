'use strict'
const { Client, Pool } = require('pg')
const Cursor = require('pg-cursor')
const QueryStream = require('pg-query-stream')
const copy = require('pg-copy-streams')
const { pipeline } = require('node:stream/promises')
const { Readable } = require('node:stream')
const { run, failure, schema, connection } = require('./cases')

async function main() {
  const client = new Client(connection)
  await client.connect()
  const rows = async (text, values) => (await client.query(text, values)).rows

  await run('tables', async () => {
    await client.query(`CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
      CREATE TABLE person (id bigserial PRIMARY KEY, name text NOT NULL UNIQUE, mood mood NOT NULL DEFAULT 'ok', tags text[], at timestamptz,
        data jsonb, raw bytea, amount numeric(10,2), during int4range, boss bigint REFERENCES person ON DELETE SET NULL);
      CREATE INDEX person_mood ON person (mood, at DESC) INCLUDE (name);
      CREATE UNIQUE INDEX person_happy ON person (lower(name)) WHERE mood = 'happy'`)
    return schema(rows)
  })
  await run('parameters of every type', () => rows(
    `INSERT INTO person (name, mood, tags, at, data, raw, amount, during) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) RETURNING *`,
    ['Ada', 'happy', ['a', 'b "c"'], new Date(Date.UTC(2026, 0, 1)), { deep: [1, null] }, Buffer.from([0, 1, 255]), '12.34', '[1,5)']))
  await run('named statements', async () => {
    const found = []
    for (let i = 0; i < 20; i++) {
      found.push((await client.query({ name: 'insert', text: 'INSERT INTO person (name, boss, at) VALUES ($1, $2, $3) RETURNING id',
        values: [`Person ${i}`, 1, new Date(i * 1000)] })).rows)
    }
    for (let i = 0; i < 20; i++) {
      found.push((await client.query({ name: 'by key', text: 'SELECT * FROM person WHERE id = $1', values: [i] })).rows)
      found.push((await client.query({ name: 'by enum', text: 'SELECT name FROM person WHERE mood = $1 ORDER BY at DESC LIMIT 3', values: ['ok'] })).rows)
    }
    return found
  })
  await run('rows as arrays, fields', async () => {
    const result = await client.query({ text: 'SELECT id, mood, tags, amount FROM person WHERE id = 1', rowMode: 'array' })
    return [result.rows, result.fields.map((field) => [field.name, field.format]), result.command, result.rowCount]
  })
  await run('several statements at once', async () =>
    (await client.query("UPDATE person SET mood = 'sad' WHERE id % 3 = 0; SELECT count(*) FROM person WHERE mood = 'sad'; DELETE FROM person WHERE id = 3"))
      .map((result) => [result.command, result.rowCount, result.rows]))
  await run('cursor', async () => {
    const cursor = client.query(new Cursor('SELECT id FROM person ORDER BY id'))
    const found = []
    for (;;) {
      const part = await cursor.read(4)
      if (part.length === 0) return found
      found.push(part)
    }
  })
  await run('stream that is left early', async () => {
    const stream = client.query(new QueryStream('SELECT g, name FROM person, generate_series(1, 1000) g ORDER BY g, id', [], { batchSize: 10 }))
    let count = 0
    for await (const row of stream) {
      count += row.g
      if (row.g === 50) break
    }
    return [count, await rows('SELECT 1 AS alive')]
  })
  await run('COPY in and out', async () => {
    const lines = Array.from({ length: 3000 }, (_, i) => `${1000 + i}\tCopied ${i}\thappy\n`)
    await pipeline(Readable.from(lines), client.query(copy.from('COPY person (id, name, mood) FROM STDIN')))
    let text = ''
    for await (const chunk of client.query(copy.to('COPY (SELECT id, name FROM person ORDER BY id) TO STDOUT (FORMAT csv)'))) text += chunk
    return text
  })
  await run('errors', async () => {
    const keep = ({ code, constraint, table, column, detail, schema }) => ({ code, constraint, table, column, detail, schema })
    const found = []
    for (const text of ["INSERT INTO person (name) VALUES ('Ada')", "INSERT INTO person (name, mood) VALUES ('ADA', 'happy')", 'INSERT INTO person (name, boss) VALUES (\'x\', 77777)',
      'INSERT INTO person (name) VALUES (NULL)', "INSERT INTO person (name, mood) VALUES ('y', 'angry')", 'SELECT * FROM nowhere']) {
      try {
        await client.query(text)
        found.push('no error')
      } catch (error) {
        found.push(keep(error))
      }
    }
    return found
  })
  await run('transactions, savepoints', async () => {
    await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ')
    await client.query("UPDATE person SET name = name || '!' WHERE id < 10")
    await client.query('SAVEPOINT s')
    const failed = await failure(() => client.query("UPDATE person SET name = 'Ada' WHERE id < 5"))
    await client.query('ROLLBACK TO s')
    await client.query('COMMIT')
    return [failed.code, await rows('SELECT name FROM person WHERE id < 10 ORDER BY id')]
  })
  await run('a pool of clients on one row', async () => {
    const pool = new Pool({ ...connection, max: 8 })
    await pool.query("UPDATE person SET amount = 0 WHERE name LIKE 'Copied 1%'")
    await Promise.all(Array.from({ length: 200 }, () => pool.query("UPDATE person SET amount = amount + 1 WHERE name = 'Copied 1'")))
    await Promise.all(Array.from({ length: 100 }, (_, i) => pool.query(`INSERT INTO person (id, name) VALUES (1000, $1)
      ON CONFLICT (id) DO UPDATE SET amount = coalesce(person.amount, 0) + 1`, [`p${i}`])))
    await pool.end()
    return rows('SELECT name, amount FROM person WHERE id IN (1000, 1001) ORDER BY id')
  })
  await run('notifications from a trigger', async () => {
    await client.query(`CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_notify('people', NEW.name); RETURN NULL; END $$;
      CREATE TRIGGER tell AFTER INSERT ON person FOR EACH ROW EXECUTE FUNCTION tell(); LISTEN people`)
    const told = new Promise((resolve) => client.once('notification', (message) => resolve([message.channel, message.payload])))
    await client.query("INSERT INTO person (name) VALUES ('Told')")
    return told
  })
  await run('a statement that is cancelled', () => failure(() => client.query("SET statement_timeout = 200; SELECT pg_sleep(5), count(*) FROM person; RESET statement_timeout")))
  await client.end()
}

main()
