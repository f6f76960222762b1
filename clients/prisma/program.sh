# Prisma: its schema engine's push, pull, diff and migrations, each again, and its client.
least_full=19

setup() {
  node_program
  once client "$home/package.json" "$home/schema.prisma" -- generate
}

# The client of the first model, for both sides.
generate() {
  cp "$home/schema.prisma" "$home/prisma.config.js" "$CACHE/"
  (cd "$CACHE" && CHECKPOINT_DISABLE=1 DATABASE_URL=postgresql://none timeout 120 node node_modules/prisma/build/index.js generate)
}

run() {
  export CHECKPOINT_DISABLE=1 PRISMA_HIDE_UPDATE_MESSAGE=1 DATABASE_URL="postgresql://$PGUSER@127.0.0.1:$PGPORT/prisma"
  run_node prisma
}
