'use strict'
// Cases of a program: each has a result, which must be the same on heap and on memory-optimized
// tables.
const fs = require('fs')
const path = require('path')

const file = path.join(process.env.OUT, 'cases.jsonl')

/** Runs one case and writes its line; a failure does not stop the ones behind it. */
async function run(name, body) {
  const line = { case: name, status: 'passed' }
  try {
    const result = await body()
    line.result = typeof result === 'string' ? result : JSON.stringify(result, null, 1) ?? ''
  } catch (error) {
    console.error(error)
    line.status = 'failed'
    line.message = String(error.stack)
  }
  fs.appendFileSync(file, JSON.stringify(line) + '\n')
}

/** The failure of what must fail. */
async function failure(body) {
  try {
    return { unexpected: await body() }
  } catch (error) {
    const cause = error.original ?? error.driverError ?? error.cause ?? error
    return { code: cause.code, message: cause.message }
  }
}

/**
 * The tables of `public` as a program sees them: columns, constraints and indexes, without the
 * access method's name.
 */
async function schema(query) {
  return [
    await query(`SELECT table_name, column_name, data_type, is_nullable, column_default FROM information_schema.columns
      WHERE table_schema = 'public' ORDER BY 1, ordinal_position`),
    await query(`SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
      WHERE connamespace = 'public'::regnamespace ORDER BY 1, 2`),
    await query(`SELECT indexname, replace(indexdef, 'USING mot_index', 'USING btree') AS def FROM pg_indexes
      WHERE schemaname = 'public' ORDER BY 1`),
  ]
}

const connection = {
  host: process.env.PGHOST,
  port: Number(process.env.PGPORT),
  user: process.env.PGUSER,
  database: process.env.PGDATABASE,
}

module.exports = { run, failure, schema, connection }
