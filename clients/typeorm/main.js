'use strict'
require('reflect-metadata')
const { DataSource, EntitySchema, In, Between, Table, TableColumn, TableForeignKey, TableIndex } = require('typeorm')
const { run, failure, schema, connection } = require('./cases')

const Customer = new EntitySchema({
  name: 'customer',
  columns: {
    id: { type: 'int', primary: true, generated: true },
    email: { type: 'varchar', length: 200, unique: true },
    name: { type: 'text', nullable: true },
    level: { type: 'enum', enum: ['gold', 'silver'], default: 'silver' },
    tags: { type: 'text', array: true, default: [] },
    data: { type: 'jsonb', nullable: true },
    balance: { type: 'numeric', precision: 12, scale: 2, default: 0 },
    created: { type: 'timestamptz', createDate: true },
    version: { type: 'int', version: true },
  },
  indices: [
    { name: 'customer_level', columns: ['level', 'created'] },
    { name: 'customer_gold', columns: ['name'], unique: true, where: "level = 'gold'" },
  ],
  checks: [{ name: 'customer_balance', expression: 'balance >= 0' }],
  relations: {
    orders: { type: 'one-to-many', target: 'purchase', inverseSide: 'customer' },
    friend: { type: 'many-to-one', target: 'customer', nullable: true, onDelete: 'SET NULL' },
  },
})
const Purchase = new EntitySchema({
  name: 'purchase',
  columns: {
    id: { type: 'uuid', primary: true, generated: 'uuid' },
    number: { type: 'int' },
    total: { type: 'float', default: 1.5 },
    note: { type: 'varchar', nullable: true },
  },
  uniques: [{ name: 'purchase_number', columns: ['customer', 'number'], deferrable: 'INITIALLY DEFERRED' }],
  relations: {
    customer: { type: 'many-to-one', target: 'customer', inverseSide: 'orders', onDelete: 'CASCADE', nullable: false },
    articles: { type: 'many-to-many', target: 'article', joinTable: true, cascade: true },
  },
})
const Article = new EntitySchema({
  name: 'article',
  columns: { code: { type: 'varchar', primary: true }, size: { type: 'smallint', primary: true }, title: { type: 'text', default: 'none' } },
})
// The customer as a later version of the program has it.
const LaterCustomer = new EntitySchema({
  name: 'customer',
  columns: {
    id: { type: 'int', primary: true, generated: true },
    email: { type: 'varchar', length: 300, unique: true },
    name: { type: 'text', nullable: false, default: 'unnamed' },
    level: { type: 'enum', enum: ['gold', 'silver', 'bronze'], default: 'silver' },
    score: { type: 'bigint', default: 0 },
  },
  indices: [{ name: 'customer_score', columns: ['score', 'name'], unique: true }],
})

class Parts1 {
  name = 'Parts1000000000001'
  async up(runner) {
    await runner.createTable(new Table({ name: 'part', columns: [
      { name: 'id', type: 'int', isPrimary: true, isGenerated: true, generationStrategy: 'increment' },
      { name: 'code', type: 'varchar', isUnique: true }] }))
  }
  async down(runner) { await runner.dropTable('part') }
}
class Parts2 {
  name = 'Parts1000000000002'
  async up(runner) {
    await runner.addColumn('part', new TableColumn({ name: 'parent', type: 'int', isNullable: true }))
    await runner.createForeignKey('part', new TableForeignKey({ name: 'part_parent', columnNames: ['parent'], referencedTableName: 'part', referencedColumnNames: ['id'] }))
    await runner.createIndex('part', new TableIndex({ name: 'part_code', columnNames: ['code'], where: 'parent IS NULL', isUnique: true }))
  }
  async down(runner) {
    await runner.dropIndex('part', 'part_code')
    await runner.dropForeignKey('part', 'part_parent')
    await runner.dropColumn('part', 'parent')
  }
}
class Parts3 {
  name = 'Parts1000000000003'
  async up(runner) {
    await runner.renameColumn('part', 'code', 'sign')
    await runner.renameTable('part', 'piece')
  }
  async down(runner) {
    await runner.renameTable('piece', 'part')
    await runner.renameColumn('part', 'sign', 'code')
  }
}

function source(entities, options = {}) {
  return new DataSource({ type: 'postgres', host: connection.host, port: connection.port, username: connection.user, database: connection.database,
    entities, ...options })
}

/** What the schema builder would do now. */
async function pending(data) {
  return (await data.driver.createSchemaBuilder().log()).upQueries.map((each) => each.query)
}

async function use(data) {
  const customers = data.getRepository('customer')
  const purchases = data.getRepository('purchase')
  await run('save', async () => {
    const saved = await customers.save(Array.from({ length: 40 }, (_, i) => ({ email: `c${i}@example.org`, name: `Name ${i}`, level: i % 4 ? 'silver' : 'gold',
      tags: ['x', `t${i % 3}`], data: { i }, balance: i })), { chunk: 15 })
    for (let i = 0; i < 30; i++) {
      await purchases.save({ number: i, customer: saved[i % 10], articles: [{ code: `A${i % 4}`, size: i % 2, title: `Article ${i % 4}` }] })
    }
    return saved.map((each) => [each.id, each.version])
  })
  await run('find', async () => [
    await customers.find({ where: { level: 'gold', balance: Between(3, 20) }, order: { name: 'DESC' }, select: { id: true, name: true } }),
    (await customers.find({ where: { id: In([1, 2, 3]) }, relations: { orders: { articles: true } }, order: { id: 'ASC', orders: { number: 'ASC' } } }))
      .map((each) => [each.id, each.orders.map((order) => [order.number, order.articles.map((article) => article.title)])]),
    await customers.findAndCount({ skip: 5, take: 3, order: { email: 'ASC' }, select: { email: true } }),
    await purchases.createQueryBuilder('p').innerJoin('p.customer', 'c').select('c.level', 'level').addSelect('count(*)', 'n').groupBy('c.level').orderBy('c.level').getRawMany(),
    await customers.exists({ where: { email: 'c7@example.org' } }),
  ])
  await run('change', async () => {
    const one = await customers.findOneBy({ email: 'c1@example.org' })
    one.balance = 500
    await customers.save(one)
    return [
      one.version,
      (await customers.update({ level: 'gold' }, { balance: 7 })).affected,
      (await customers.increment({ level: 'silver' }, 'balance', 2)).affected,
      (await customers.upsert([{ email: 'c2@example.org', balance: 3 }], ['email'])).identifiers,
      (await failure(() => customers.insert({ email: 'c3@example.org' }))).code,
      (await failure(() => customers.insert({ email: 'other', name: 'Name 4', level: 'gold' }))).code,
      (await failure(() => customers.update({ id: 5 }, { balance: -1 }))).code,
      (await failure(() => purchases.insert({ number: 5, customer: { id: 6 } }))).code,
      (await customers.delete({ email: 'c4@example.org' })).affected,
      await purchases.count(),
    ]
  })
  await run('transactions and locks', async () => {
    const failed = await failure(() => data.transaction(async (manager) => {
      await manager.deleteAll('purchase')
      await manager.insert('purchase', { number: 1, customer: { id: 10000 } })
    }))
    const locked = await data.transaction('REPEATABLE READ', (manager) => manager.findOne('customer', { where: { id: 3 }, lock: { mode: 'pessimistic_write' } }))
    return [failed.code, locked.email, await purchases.count()]
  })
}

async function main() {
  const entities = [Customer, Purchase, Article]
  const data = await source(entities).initialize()
  await run('synchronize', async () => {
    await data.synchronize()
    return schema((text) => data.query(text))
  })
  await run('nothing is left to do', () => pending(data))
  await run('synchronize again', async () => {
    await data.synchronize()
    return schema((text) => data.query(text))
  })
  await use(data)
  await run('reads the tables', async () => {
    const runner = data.createQueryRunner()
    const tables = await runner.getTables(['customer', 'purchase', 'article', 'purchase_articles_article'])
    await runner.release()
    // What comes out of the catalogs has no order.
    return tables.sort((a, b) => (a.name < b.name ? -1 : 1)).map((table) => [table.name,
      table.columns.map((column) => [column.name, column.type, column.isNullable, column.default, column.isUnique]).sort(),
      table.indices.map((index) => [index.name, index.columnNames, index.isUnique, index.where]).sort(), table.uniques.map((unique) => [unique.name, unique.columnNames, unique.deferrable]).sort(),
      table.foreignKeys.map((key) => [key.name, key.columnNames, key.referencedTableName, key.onDelete]).sort(), table.checks.map((check) => check.expression)])
  })
  await data.query('DROP TABLE purchase_articles_article, purchase, article')
  await data.destroy()

  const later = await source([LaterCustomer]).initialize()
  await run('what a later model changes', () => pending(later))
  await run('synchronize to a later model', async () => {
    await later.query('DELETE FROM customer')
    await later.synchronize()
    return [await schema((text) => later.query(text)), await pending(later)]
  })
  await later.destroy()

  const migrating = await source([], { migrations: [Parts1, Parts2, Parts3], migrationsTransactionMode: 'each' }).initialize()
  for (const time of ['first', 'second']) {
    await run(`${time}: migrations`, async () => [(await migrating.runMigrations()).map((each) => each.name), await schema((text) => migrating.query(text))])
    await run(`${time}: nothing to migrate`, async () => [(await migrating.runMigrations()).length, await migrating.showMigrations()])
    await run(`${time}: undo all`, async () => {
      for (let i = 0; i < 3; i++) await migrating.undoLastMigration()
      return schema((text) => migrating.query(text))
    })
  }
  await run('drop all', async () => {
    await migrating.dropDatabase()
    return schema((text) => migrating.query(text))
  })
  await migrating.destroy()
}

main()
