'use strict'
const fs = require('node:fs')
const { execFileSync } = require('node:child_process')
const { Client } = require('pg')
const { run, failure, schema, connection } = require('./cases')

/** What the command says about tables; without advice, times and places. */
function prisma(...parameters) {
  const told = execFileSync('node', ['node_modules/prisma/build/index.js', ...parameters], { stdio: ['ignore', 'pipe', 'pipe'], encoding: 'utf8', timeout: 120000, env: { ...process.env, NO_COLOR: '1' } })
  return told.split('\n').filter((line) => !/Prisma config|Loaded|Datasource|http|tip|recommend|Running generate|will NOT be used|^\s*$/i.test(line))
    .map((line) => line.replace(/ Done in .*/, '').replace(/127\.0\.0\.1:\d+/, 'the server'))
}

async function use(PrismaClient, PrismaPg) {
  const db = new PrismaClient({ adapter: new PrismaPg({ connectionString: process.env.DATABASE_URL }) })
  await run('create', async () => {
    for (let i = 0; i < 30; i++) {
      await db.user.create({ data: { email: `u${i}@example.org`, name: `Name ${i % 5}`, role: i % 3 ? 'MEMBER' : 'ADMIN', balance: i + 0.5, tags: ['a', `t${i}`], data: { i }, managerId: i > 5 ? 1 : null,
        posts: { create: [0, 1, 2].map((number) => ({ number, title: `Post ${number}`, labels: { connectOrCreate: { where: { part_code: { part: number, code: 'abc' } }, create: { part: number, code: 'abc' } } } })) } } })
    }
    return [await db.user.createMany({ data: [{ email: 'u1@example.org' }, { email: 'many' }], skipDuplicates: true }), await db.post.count(), await db.label.count()]
  })
  await run('read', async () => [
    await db.user.findUnique({ where: { email: 'u7@example.org' }, select: { id: true, balance: true, tags: true, data: true } }),
    await db.user.findMany({ where: { role: 'ADMIN', balance: { gt: 3, lt: 20 } }, orderBy: [{ name: 'desc' }, { id: 'asc' }], take: 4, skip: 1, select: { id: true, name: true } }),
    await db.user.findMany({ where: { posts: { some: { labels: { some: { part: 2 } } } }, tags: { has: 't9' } }, include: { posts: { orderBy: { number: 'desc' }, select: { title: true } } }, omit: { created: true } }),
    await db.user.groupBy({ by: ['role'], _count: true, _sum: { balance: true }, orderBy: { role: 'asc' } }),
    await db.user.aggregate({ _max: { balance: true }, _min: { id: true } }),
    await db.user.findMany({ cursor: { id: 10 }, take: 3, orderBy: { id: 'asc' }, select: { email: true } }),
  ])
  await run('write', async () => [
    (await db.user.upsert({ where: { email: 'u2@example.org' }, create: { email: 'x' }, update: { balance: { increment: 10 } } })).balance,
    await db.user.updateMany({ where: { role: 'ADMIN' }, data: { balance: { multiply: 2 } } }),
    (await failure(() => db.user.create({ data: { email: 'u3@example.org' } }))).code,
    (await failure(() => db.post.create({ data: { number: 1, title: 'x', authorId: 100000 } }))).code,
    (await failure(() => db.post.updateMany({ where: { authorId: 3 }, data: { number: 1 } }))).code,
    (await db.user.delete({ where: { id: 1 }, select: { email: true } })),
    await db.post.count(), await db.user.count({ where: { managerId: null } }),
  ])
  await run('transactions', async () => {
    const failed = await failure(() => db.$transaction(async (inner) => {
      await inner.post.deleteMany()
      await inner.user.create({ data: { email: 'u5@example.org' } })
    }, { isolationLevel: 'Serializable' }))
    await db.$transaction([db.user.update({ where: { id: 5 }, data: { name: 'five' } }), db.post.deleteMany({ where: { authorId: 6 } })])
    return [failed.code, await db.post.count(), await db.$queryRaw`SELECT name FROM "User" WHERE id = ${5}`]
  })
  await db.$disconnect()
}

async function main() {
  const client = new Client(connection)
  await client.connect()
  const rows = async (text) => (await client.query(text)).rows
  const all = ['--accept-data-loss', '--skip-generate']

  await run('push', async () => [prisma('db', 'push', '--skip-generate'), await schema(rows)])
  await run('push again', async () => [prisma('db', 'push', '--skip-generate'), await schema(rows)])
  await run('pull', () => prisma('db', 'pull', '--print'))
  await use(require('@prisma/client').PrismaClient, require('@prisma/adapter-pg').PrismaPg)
  fs.copyFileSync('schema.prisma', 'first.prisma')
  fs.copyFileSync('later.prisma', 'schema.prisma')
  await client.query('UPDATE "User" SET name = \'none\' WHERE name IS NULL')
  await run('push of a later model', async () => [prisma('db', 'push', ...all), await schema(rows)])
  await run('push of it again', async () => [prisma('db', 'push', ...all), await schema(rows)])
  await run('pull of it', () => prisma('db', 'pull', '--print'))
  await run('reset', async () => [prisma('db', 'push', '--force-reset', ...all), await schema(rows)])

  await client.query('DROP SCHEMA public CASCADE; CREATE SCHEMA public')
  for (const [name, from, to] of [['1_first', ['--from-empty'], 'first.prisma'], ['2_later', ['--from-schema-datamodel', 'first.prisma'], 'later.prisma']]) {
    fs.mkdirSync(`migrations/${name}`, { recursive: true })
    fs.writeFileSync('migrations/migration_lock.toml', 'provider = "postgresql"\n')
    await run(`migration ${name}`, () => {
      const script = prisma('migrate', 'diff', ...from, '--to-schema-datamodel', to, '--script').join('\n')
      fs.writeFileSync(`migrations/${name}/migration.sql`, script)
      return script
    })
    await run(`deploy ${name}`, async () => [prisma('migrate', 'deploy'), await schema(rows)])
    await run(`deploy ${name} again`, () => prisma('migrate', 'deploy'))
    await run(`status after ${name}`, () => prisma('migrate', 'status'))
  }
  await client.end()
}

main()
