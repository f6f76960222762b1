'use strict'
const { sql } = require('drizzle-orm')
const { bigint, boolean, check, foreignKey, index, integer, jsonb, numeric, pgEnum, pgTable, primaryKey, serial, text, timestamp, unique, uniqueIndex, uuid, varchar } = require('drizzle-orm/pg-core')

const level = pgEnum('level', ['low', 'high'])
const users = pgTable('users', {
  id: serial().primaryKey(),
  email: varchar({ length: 200 }).notNull().unique('users_email'),
  name: text(),
  level: level().notNull().default('low'),
  tags: text().array(),
  data: jsonb(),
  balance: numeric({ precision: 12, scale: 2 }).notNull().default('0'),
  created: timestamp({ withTimezone: true }).notNull().defaultNow(),
  active: boolean().default(true),
  boss: integer(),
}, (t) => [
  index('users_level').on(t.level, t.created.desc()),
  uniqueIndex('users_lower').on(sql`lower(${t.email})`),
  index('users_active').on(t.name).where(sql`${t.active}`),
  foreignKey({ columns: [t.boss], foreignColumns: [t.id], name: 'users_boss' }).onDelete('set null'),
  check('users_balance', sql`${t.balance} >= 0`),
])
const posts = pgTable('posts', {
  id: uuid().primaryKey().defaultRandom(),
  author: integer().notNull().references(() => users.id, { onDelete: 'cascade' }),
  number: bigint({ mode: 'number' }).generatedAlwaysAsIdentity(),
  title: text().notNull(),
  length: integer().generatedAlwaysAs(sql`length(title)`),
}, (t) => [unique('posts_title').on(t.author, t.title).nullsNotDistinct()])
const likes = pgTable('likes', {
  post: uuid().notNull().references(() => posts.id),
  user: integer().notNull().references(() => users.id),
}, (t) => [primaryKey({ columns: [t.post, t.user] })])

module.exports = { level, users, posts, likes }
