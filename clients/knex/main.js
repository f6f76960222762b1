'use strict'
const makeKnex = require('knex')
const { run, failure, schema, connection } = require('./cases')

const knex = makeKnex({ client: 'pg', connection, pool: { min: 0, max: 6 } })

const migrations = {
  '1_users': {
    up: (db) => db.schema.createTable('users', (t) => {
      t.increments('id')
      t.string('email', 200).notNullable().unique()
      t.enu('role', ['admin', 'member'], { useNative: true, enumName: 'user_role' }).notNullable().defaultTo('member')
      t.jsonb('settings').defaultTo('{}')
      t.timestamps(true, true)
      t.index(['role', 'created_at'], 'users_role')
    }),
    down: (db) => db.schema.dropTable('users').raw('DROP TYPE user_role'),
  },
  '2_posts': {
    up: (db) => db.schema.createTable('posts', (t) => {
      t.uuid('id').primary().defaultTo(db.raw('gen_random_uuid()'))
      t.integer('user_id').unsigned().notNullable().references('id').inTable('users').onDelete('CASCADE').deferrable('deferred')
      t.text('title').notNullable()
      t.decimal('price', 10, 2).checkPositive()
      t.specificType('tags', 'text[]').index()
      t.unique(['user_id', 'title'], { deferrable: 'immediate' })
      t.index(['title'], 'posts_priced', { predicate: db.whereNotNull('price') })
    }),
    down: (db) => db.schema.dropTable('posts'),
  },
  '3_changes': {
    up: async (db) => {
      await db.schema.alterTable('posts', (t) => {
        t.string('slug', 50).notNullable().defaultTo('none')
        t.renameColumn('title', 'heading')
        t.dropIndex([], 'posts_priced')
        t.setNullable('price')
      })
      await db.schema.alterTable('users', (t) => {
        t.string('email', 300).notNullable().alter()
        t.text('role').alter()
      })
      await db.raw('CREATE UNIQUE INDEX users_lower ON users (lower(email))')
    },
    down: async (db) => {
      await db.raw('DROP INDEX users_lower')
      await db.schema.alterTable('posts', (t) => {
        t.dropColumn('slug')
        t.renameColumn('heading', 'title')
        t.index(['title'], 'posts_priced')
      })
    },
  },
  '4_concurrently': {
    config: { transaction: false },
    up: (db) => db.raw('CREATE INDEX CONCURRENTLY posts_slug ON posts (slug)'),
    down: (db) => db.raw('DROP INDEX CONCURRENTLY posts_slug'),
  },
}
const migrationSource = {
  getMigrations: async () => Object.keys(migrations),
  getMigrationName: (name) => name,
  getMigration: async (name) => migrations[name],
}

async function main() {
  const rows = async (text) => (await knex.raw(text)).rows
  for (const time of ['first', 'second']) {
    for (const name of Object.keys(migrations)) {
      await run(`${time}: up ${name}`, async () => [(await knex.migrate.up({ migrationSource }))[1], await schema(rows)])
    }
    await run(`${time}: latest does nothing`, async () => (await knex.migrate.latest({ migrationSource }))[1])
    await run(`${time}: rows`, async () => {
      await knex.batchInsert('users', Array.from({ length: 300 }, (_, i) => ({ email: `User${i}@example.org`, role: i % 3 ? 'member' : 'admin' })), 50)
      const ids = await knex('users').orderBy('id').pluck('id')
      await knex('posts').insert(ids.map((user_id, i) => ({ user_id, heading: `Post ${i}`, price: i + 1, tags: ['a', `t${i % 5}`], slug: `s${i % 10}` })))
      return knex('posts').join('users', 'users.id', 'posts.user_id').select('slug').count('* as n').sum('price as total').groupBy('slug').orderBy('slug')
    })
    await run(`${time}: reads`, async () => [
      await knex('users').whereRaw('lower(email) = ?', 'user7@example.org').first('email', 'role'),
      await knex('posts').whereBetween('price', [10, 14]).orderBy('price').pluck('heading'),
      await knex('posts').whereRaw('tags = ARRAY[?, ?]', ['a', 't3']).count(),
      await knex('posts').distinct('slug').orderBy('slug', 'desc'),
      await knex.with('cheap', knex('posts').where('price', '<', 5)).select('heading').from('cheap').orderBy('heading'),
      await knex('users').columnInfo(),
      await knex.schema.hasTable('posts'),
      await knex.schema.hasColumn('posts', 'heading'),
    ])
    await run(`${time}: writes`, async () => [
      await knex('users').insert({ email: 'User1@example.org' }).onConflict('email').merge({ role: 'admin' }).returning(['email', 'role']),
      await knex('users').insert({ email: 'User2@example.org' }).onConflict('email').ignore(),
      (await failure(() => knex('users').insert({ email: 'USER3@example.org' }))).code,
      (await failure(() => knex('posts').insert({ user_id: 1000000, heading: 'x' }))).code,
      (await failure(() => knex('posts').update({ price: -1 }))).code,
      await knex('posts').where('slug', 's1').increment('price', 100),
      (await knex('posts').where('slug', 's2').del().returning('heading')).sort((a, b) => a.heading < b.heading ? -1 : 1),
    ])
    await run(`${time}: transactions`, async () => {
      await knex.transaction(async (outer) => {
        await outer('posts').update({ heading: knex.raw("heading || '!'") })
        await failure(() => outer.transaction(async (inner) => {
          await inner('users').del()
          throw new Error('back')
        }))
        await outer('users').where('role', 'admin').forUpdate().skipLocked().select('id')
        await outer('users').where({ email: 'User9@example.org' }).del()
      })
      return [await knex('posts').count(), await knex('posts').max('heading')]
    })
    await run(`${time}: down twice, and latest again`, async () => {
      await knex.migrate.down({ migrationSource })
      await knex.migrate.down({ migrationSource })
      const between = await schema(rows)
      return [between, (await knex.migrate.latest({ migrationSource }))[1], await schema(rows), await knex('posts').count()]
    })
    await run(`${time}: roll back all`, async () => [(await knex.migrate.rollback({ migrationSource }, true))[1], await schema(rows)])
  }
  await knex.destroy()
}

main()
