'use strict'
const { PrismaPg } = require('@prisma/adapter-pg')

// The type "char" of the catalogs, which this version of the adapter does not know, is read as
// text.
function reading(adapter) {
  const perform = adapter.performIO.bind(adapter)
  adapter.performIO = async (query) => {
    const result = await perform(query)
    for (const field of result.fields ?? []) if (field.dataTypeID === 18) field.dataTypeID = 25
    return result
  }
  return adapter
}

// The schema engine that is in the package, in WebAssembly; the native one is in no registry.
module.exports = {
  schema: process.env.SCHEMA ?? 'schema.prisma',
  migrations: { path: 'migrations' },
  experimental: { adapter: true },
  engine: 'js',
  adapter: async () => {
    const factory = new PrismaPg({ connectionString: process.env.DATABASE_URL })
    const { connect, connectToShadowDb } = factory
    factory.connect = async () => reading(await connect.call(factory))
    factory.connectToShadowDb = async () => reading(await connectToShadowDb.call(factory))
    return factory
  },
}
