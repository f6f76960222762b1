'use strict'
const { PGPORT, PGUSER, PGDATABASE } = process.env
module.exports = {
  dialect: 'postgresql',
  schema: './tables.js',
  out: './out',
  dbCredentials: { url: `postgresql://${PGUSER}@127.0.0.1:${PGPORT}/${PGDATABASE}` },
}
