'use strict'
const fs = require('node:fs')
const { execFileSync } = require('node:child_process')
const { Pool } = require('pg')
const { drizzle } = require('drizzle-orm/node-postgres')
const { migrate } = require('drizzle-orm/node-postgres/migrator')
const { and, asc, between, count, desc, eq, inArray, sql } = require('drizzle-orm')
const tables = require('./tables')
const { run, failure, schema, connection } = require('./cases')

const { users, posts, likes } = tables
const pool = new Pool(connection)
const db = drizzle(pool, { schema: tables })
const rows = async (text) => (await pool.query(text)).rows

function kit(...parameters) {
  const told = execFileSync('node', ['node_modules/drizzle-kit/bin.cjs', ...parameters], { stdio: ['ignore', 'pipe', 'pipe'], encoding: 'utf8', timeout: 120000 })
  // Without colours and the signs of progress.
  return told.split('\n').filter((line) => /Changes applied|No changes detected|Nothing/.test(line)).map((line) => line.replace(/\u001b\[[0-9;]*m/g, '').replace(/^\[[^\]]*\] /, '').trim())
}

async function main() {
  await run('push', async () => [kit('push', '--force'), await schema(rows)])
  await run('push again', async () => [kit('push', '--force'), await schema(rows)])
  await run('introspect', () => {
    kit('introspect')
    return fs.readFileSync('out/schema.ts', 'utf8')
  })
  await run('insert', async () => {
    const made = await db.insert(users).values(Array.from({ length: 50 }, (_, i) => ({ email: `User${i}@example.org`, name: `Name ${i % 9}`, level: i % 3 ? 'low' : 'high', tags: ['a', `t${i}`], balance: `${i}` })))
      .returning({ id: users.id })
    await db.update(users).set({ boss: 1 }).where(eq(users.level, 'high'))
    await db.insert(posts).values(made.map(({ id }, i) => ({ author: id, title: `Post ${i % 7}` })))
    const some = await db.select({ id: posts.id }).from(posts).where(eq(posts.title, 'Post 3'))
    await db.insert(likes).values(some.map(({ id }) => ({ post: id, user: 1 })))
    return [made, some.length]
  })
  await run('select', async () => [
    await db.select({ level: users.level, n: count(), total: sql`sum(${users.balance})` }).from(users).groupBy(users.level).orderBy(users.level),
    await db.select({ email: users.email }).from(users).where(and(eq(users.level, 'high'), between(users.balance, '5', '30'))).orderBy(desc(users.balance)).limit(4),
    await db.select({ title: posts.title, n: count() }).from(posts).innerJoin(users, eq(users.id, posts.author)).leftJoin(likes, eq(likes.post, posts.id)).groupBy(posts.title).orderBy(asc(posts.title)),
    (await db.query.users.findMany({ where: inArray(users.id, [1, 2, 3]), columns: { id: true, email: true }, orderBy: users.id })),
    await db.select({ id: users.id }).from(users).where(sql`lower(${users.email}) = 'user9@example.org'`),
    await db.select({ length: posts.length, number: posts.number }).from(posts).orderBy(posts.number).limit(3),
  ])
  await run('prepared', async () => {
    const prepared = db.select({ name: users.name }).from(users).where(eq(users.id, sql.placeholder('id'))).prepare('by_id')
    const found = []
    for (let id = 1; id < 20; id++) found.push(await prepared.execute({ id }))
    return found
  })
  await run('write', async () => [
    await db.insert(users).values({ email: 'User1@example.org', balance: '5' }).onConflictDoUpdate({ target: users.email, set: { balance: '500' } }).returning({ id: users.id, balance: users.balance }),
    (await db.insert(users).values({ email: 'User2@example.org' }).onConflictDoNothing()).rowCount,
    (await failure(() => db.insert(users).values({ email: 'USER3@example.org' }))).code,
    (await failure(() => db.insert(posts).values({ author: 100000, title: 'x' }))).code,
    (await failure(() => db.update(users).set({ balance: '-1' }))).code,
    (await db.delete(likes)).rowCount,
    (await db.delete(users).where(eq(users.id, 5)).returning({ email: users.email })),
    await db.$count(posts),
  ])
  await run('nested transactions', async () => {
    await db.transaction(async (outer) => {
      await outer.update(users).set({ name: 'all' })
      await failure(() => outer.transaction(async (inner) => {
        await inner.delete(users)
        inner.rollback()
      }))
      await outer.delete(users).where(eq(users.id, 7))
    }, { isolationLevel: 'repeatable read' })
    return [await db.$count(users), await db.select({ name: users.name }).from(users).limit(1)]
  })
  await run('migrations that are generated', async () => {
    await pool.query('DROP SCHEMA public CASCADE; CREATE SCHEMA public')
    fs.rmSync('out', { recursive: true, force: true })
    kit('generate', '--name', 'first')
    await migrate(db, { migrationsFolder: './out' })
    await migrate(db, { migrationsFolder: './out' })
    return [kit('push', '--force'), await schema(rows), await rows('SELECT count(*) FROM drizzle.__drizzle_migrations')]
  })
  await pool.end()
}

main()
