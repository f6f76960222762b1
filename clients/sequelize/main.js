'use strict'
const { Sequelize, DataTypes, Op } = require('sequelize')
const { Umzug, SequelizeStorage } = require('umzug')
const { run, failure, schema, connection } = require('./cases')

const statements = []
const sequelize = new Sequelize({
  dialect: 'postgres', host: connection.host, port: connection.port, username: connection.user, database: connection.database,
  logging: (text) => statements.push(text.replace(/^Executing \([^)]*\): /, '')),
})

function models() {
  const User = sequelize.define('User', {
    email: { type: DataTypes.STRING, allowNull: false, unique: true },
    role: { type: DataTypes.ENUM('admin', 'member'), defaultValue: 'member' },
    tags: DataTypes.ARRAY(DataTypes.TEXT),
    period: DataTypes.RANGE(DataTypes.INTEGER),
    profile: DataTypes.JSONB,
    score: { type: DataTypes.DECIMAL(10, 2), allowNull: false, defaultValue: 0 },
  }, {
    version: true,
    paranoid: true,
    indexes: [
      { fields: ['role', { name: 'createdAt', order: 'DESC' }] },
      { name: 'users_lower', unique: true, fields: [sequelize.fn('lower', sequelize.col('email'))] },
      { name: 'users_admins', fields: ['score'], where: { role: 'admin' } },
    ],
  })
  const Post = sequelize.define('Post', {
    id: { type: DataTypes.UUID, defaultValue: DataTypes.UUIDV4, primaryKey: true },
    title: { type: DataTypes.STRING(100), allowNull: false },
    number: { type: DataTypes.INTEGER, unique: 'author_number' },
    AuthorId: { type: DataTypes.INTEGER, unique: 'author_number' },
  })
  const Label = sequelize.define('Label', { name: { type: DataTypes.STRING, primaryKey: true } }, { timestamps: false })
  User.hasMany(Post, { as: 'posts', foreignKey: 'AuthorId', onDelete: 'CASCADE' })
  Post.belongsTo(User, { as: 'author', foreignKey: 'AuthorId' })
  Post.belongsToMany(Label, { through: 'PostLabel' })
  Label.belongsToMany(Post, { through: 'PostLabel' })
  User.belongsTo(User, { as: 'boss' })
  return { User, Post, Label }
}

async function main() {
  const { User, Post, Label } = models()
  const queries = sequelize.getQueryInterface()
  const rows = (text) => sequelize.query(text, { type: 'SELECT' })
  const changes = async (body) => {
    statements.length = 0
    await body()
    return statements.filter((text) => /^(CREATE|ALTER|DROP|COMMENT|DO)/i.test(text))
  }

  await run('sync', async () => [await changes(() => sequelize.sync()), await schema(rows)])
  await run('sync again', async () => [await changes(() => sequelize.sync()), await schema(rows)])
  await run('alter', async () => [await changes(() => sequelize.sync({ alter: true })), await schema(rows)])
  await run('alter again', async () => [await changes(() => sequelize.sync({ alter: true })), await schema(rows)])
  await run('describe', async () => {
    const found = {}
    for (const name of (await queries.showAllTables()).map((each) => each.tableName ?? each).sort()) {
      found[name] = [await queries.describeTable(name), await queries.getForeignKeyReferencesForTable(name)]
    }
    return found
  })
  await run('indexes', async () => (await queries.showIndex('Users')).concat(await queries.showIndex('Posts'))
    .map(({ name, primary, unique, fields }) => ({ name, primary, unique, fields })).sort((a, b) => a.name < b.name ? -1 : 1))
  await run('rows', async () => {
    await User.bulkCreate(Array.from({ length: 60 }, (_, i) => ({ email: `User${i}@example.org`, role: i % 4 ? 'member' : 'admin', tags: ['x', `t${i % 3}`],
      period: [i, i + 5], profile: { n: i }, score: i / 4, bossId: null })))
    await User.update({ bossId: 1 }, { where: { id: { [Op.gt]: 30 } } })
    for (let i = 1; i <= 20; i++) {
      const post = await Post.create({ title: `Post ${i}`, number: i, AuthorId: 1 + i % 5 })
      const [label] = await Label.findOrCreate({ where: { name: `label ${i % 3}` } })
      await post.addLabel(label)
    }
    return [await User.count(), await Post.count(), await sequelize.models.PostLabel.count()]
  })
  await run('reads', async () => [
    (await User.findAll({ where: { role: 'admin', score: { [Op.between]: [2, 10] } }, order: [['score', 'DESC']] })).map((user) => user.email),
    (await User.findOne({ where: sequelize.where(sequelize.fn('lower', sequelize.col('email')), 'user7@example.org') })).score,
    (await User.findAll({ include: { association: 'posts', required: true }, order: ['id', ['posts', 'number', 'ASC']] })).map((user) => [user.id, user.posts.map((post) => post.title)]),
    (await Label.findAll({ include: Post, order: ['name', [Post, 'number', 'ASC']] })).map((label) => [label.name, label.Posts.map((post) => post.number)]),
    await User.findAndCountAll({ where: { tags: { [Op.contains]: ['t1'] } }, limit: 2, offset: 3, order: ['id'], attributes: ['id'] }),
    (await User.findAll({ where: { period: { [Op.contains]: 12 }, 'profile.n': { [Op.gt]: 9 } }, order: ['id'] })).map((user) => user.id),
    await User.findAll({ attributes: ['role', [sequelize.fn('count', '*'), 'n'], [sequelize.fn('sum', sequelize.col('score')), 'total']], group: 'role', order: ['role'], raw: true }),
  ])
  await run('writes', async () => {
    const stale = await User.findByPk(2)
    const user = await User.findByPk(2)
    await user.update({ score: 50 })
    return [
      (await failure(() => stale.update({ score: 51 }))).message,
      (await User.upsert({ email: 'User3@example.org', score: 77 }))[0].get('score'),
      (await failure(() => User.create({ email: 'USER4@example.org' }))).code,
      (await failure(() => Post.create({ title: 'x', AuthorId: 100000 }))).code,
      (await failure(() => Post.create({ title: 'x', number: 5, AuthorId: 1 }))).code,
      (await User.increment({ score: 5 }, { where: { role: 'admin' } }))[0][1],
      await User.destroy({ where: { id: 5 } }),
      await User.count({ paranoid: false }),
      await User.destroy({ where: { id: 2 }, force: true }),
      await Post.count(),
    ]
  })
  await run('transactions', async () => {
    const failed = await failure(() => sequelize.transaction(async (transaction) => {
      await User.destroy({ where: {}, transaction, force: true })
      await Post.create({ title: 'x', AuthorId: 1 }, { transaction })
    }))
    await sequelize.transaction({ isolationLevel: 'SERIALIZABLE' }, async (transaction) => {
      const user = await User.findByPk(7, { transaction, lock: transaction.LOCK.UPDATE })
      await user.update({ score: 1 }, { transaction })
    })
    return [failed.code, await User.count(), (await User.findByPk(7)).score]
  })
  await run('migrations', async () => {
    const umzug = new Umzug({
      migrations: [
        { name: '1', up: () => queries.createTable('parts', { id: { type: DataTypes.INTEGER, primaryKey: true, autoIncrement: true }, code: { type: DataTypes.STRING, unique: true } }), down: () => queries.dropTable('parts') },
        { name: '2', up: () => queries.addColumn('parts', 'user', { type: DataTypes.INTEGER, references: { model: 'Users', key: 'id' } }), down: () => queries.removeColumn('parts', 'user') },
        { name: '3', up: () => queries.addIndex('parts', ['code', 'user'], { unique: true, where: { user: { [Op.ne]: null } }, name: 'parts_code' }), down: () => queries.removeIndex('parts', 'parts_code') },
        { name: '4', up: () => queries.addConstraint('parts', { fields: ['id'], type: 'check', where: { id: { [Op.gt]: 0 } }, name: 'parts_id' }), down: () => queries.removeConstraint('parts', 'parts_id') },
        { name: '5', up: () => queries.changeColumn('parts', 'code', { type: DataTypes.TEXT, allowNull: false }), down: () => queries.changeColumn('parts', 'code', { type: DataTypes.STRING }) },
        { name: '6', up: () => queries.renameColumn('parts', 'code', 'sign'), down: () => queries.renameColumn('parts', 'sign', 'code') },
      ],
      storage: new SequelizeStorage({ sequelize }), logger: undefined,
    })
    const up = (await umzug.up()).map((each) => each.name)
    const made = await schema(rows)
    const down = (await umzug.down({ to: 0 })).map((each) => each.name)
    const undone = await schema(rows)
    return [up, made, down, undone, (await umzug.up()).length]
  })
  await run('sync by force', async () => [await changes(() => sequelize.sync({ force: true })), await schema(rows)])
  await run('drop', async () => {
    await sequelize.drop({ cascade: true })
    return schema(rows)
  })
  await sequelize.close()
}

main()
