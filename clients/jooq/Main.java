import static org.jooq.impl.DSL.constraint;
import static org.jooq.impl.DSL.count;
import static org.jooq.impl.DSL.field;
import static org.jooq.impl.DSL.lower;
import static org.jooq.impl.DSL.name;
import static org.jooq.impl.DSL.rowNumber;
import static org.jooq.impl.DSL.sum;
import static org.jooq.impl.DSL.table;
import static org.jooq.impl.DSL.using;
import static org.jooq.impl.DSL.val;

import java.math.BigDecimal;
import java.sql.Connection;
import org.jooq.DSLContext;
import org.jooq.Field;
import org.jooq.SQLDialect;
import org.jooq.Schema;
import org.jooq.Table;
import org.jooq.impl.SQLDataType;
import org.jooq.meta.postgres.PostgresDatabase;

/** Tables by jOOQ's language, read back by its metadata and by the reader of its code generator. */
final class Main {
    private static final Table<?> AUTHOR = table(name("author"));
    private static final Table<?> BOOK = table(name("book"));
    private static final Field<Integer> ID = field(name("id"), Integer.class);
    private static final Field<Integer> AUTHOR_ID = field(name("author_id"), Integer.class);
    private static final Field<String> TITLE = field(name("title"), String.class);
    private static final Field<BigDecimal> PRICE = field(name("price"), BigDecimal.class);

    private static void tables(DSLContext sql) throws Exception {
        Cases.run("create tables", () -> {
            sql.createTable("author").column("id", SQLDataType.INTEGER.identity(true)).column("name", SQLDataType.VARCHAR(100).notNull())
                .constraints(constraint("author_pk").primaryKey("id"), constraint("author_name").unique("name")).execute();
            sql.createTable("book").column("id", SQLDataType.INTEGER.identity(true)).column("author_id", SQLDataType.INTEGER.notNull())
                .column("title", SQLDataType.VARCHAR.notNull()).column("price", SQLDataType.NUMERIC(10, 2).defaultValue(BigDecimal.ONE))
                .constraints(constraint("book_pk").primaryKey("id"),
                    constraint("book_author").foreignKey("author_id").references("author", "id").onDeleteCascade(),
                    constraint("book_price").check(PRICE.ge(BigDecimal.ZERO))).execute();
            sql.createUniqueIndex("book_title").on(BOOK, AUTHOR_ID.asc(), TITLE.desc()).execute();
            sql.createIndex("book_lower").on(BOOK, lower(TITLE)).where(PRICE.gt(BigDecimal.TEN)).execute();
            return Cases.schema();
        });
        Cases.run("change tables", () -> {
            sql.alterTable("book").add("isbn", SQLDataType.CHAR(13)).execute();
            sql.alterTable("book").alterColumn("title").set(SQLDataType.VARCHAR(500)).execute();
            sql.alterTable("book").renameColumn("isbn").to("number").execute();
            sql.alterTable("book").add(constraint("book_number").unique("number")).execute();
            sql.createView("titles", "title").as(sql.select(TITLE).from(BOOK)).execute();
            return Cases.schema();
        });
    }

    private static void reflection(DSLContext sql, Connection connection) throws Exception {
        Cases.run("metadata as DDL", () -> sql.meta().filterSchemas(schema -> schema.getName().equals("public")).ddl().toString());
        Cases.run("metadata: keys and indexes", () -> {
            StringBuilder found = new StringBuilder();
            for (Schema schema : sql.meta().getSchemas("public")) {
                for (Table<?> each : schema.getTables()) {
                    found.append(each).append(each.getKeys()).append(each.getReferences()).append(each.getIndexes()).append(each.getChecks()).append('\n');
                }
            }
            return found;
        });
        Cases.run("the code generator's reader", () -> {
            PostgresDatabase database = new PostgresDatabase();
            database.setConnection(connection);
            database.setConfiguredSchemata(java.util.List.of(new org.jooq.meta.jaxb.SchemaMappingType().withInputSchema("public")));
            database.setIncludes(new String[] {".*"});
            database.setExcludes(new String[0]);
            database.setIncludeIndexes(true);
            StringBuilder found = new StringBuilder();
            for (var schema : database.getSchemata()) {
                if (!schema.getName().equals("public")) {
                    continue;
                }
                found.append(database.getTables(schema)).append(database.getUniqueKeys(schema)).append(database.getForeignKeys(schema))
                    .append(database.getIndexes(schema)).append(database.getCheckConstraints(schema)).append(database.getSequences(schema)).append('\n');
                for (var each : database.getTables(schema)) {
                    each.getColumns().forEach(column -> found.append(column).append(column.getDefinedType().getType()).append('\n'));
                }
            }
            return found;
        });
    }

    private static void statements(DSLContext sql) throws Exception {
        Cases.run("insert", () -> {
            var authors = sql.insertInto(AUTHOR, field(name("name"), String.class));
            for (int i = 0; i < 10; i++) {
                authors = authors.values("Author " + i);
            }
            var books = sql.insertInto(BOOK, AUTHOR_ID, TITLE, PRICE);
            for (int i = 0; i < 100; i++) {
                books = books.values(1 + i % 10, "Title " + i, new BigDecimal(i));
            }
            return authors.returning(ID).fetch() + " " + books.execute();
        });
        Cases.run("select", () -> sql.select(field(name("author", "name")), count(), sum(PRICE)).from(AUTHOR).join(BOOK).on(field(name("author", "id"), Integer.class).eq(AUTHOR_ID))
            .groupBy(field(name("author", "name"))).having(sum(PRICE).gt(new BigDecimal(450))).orderBy(1).fetch());
        Cases.run("window", () -> sql.select(TITLE, rowNumber().over().partitionBy(AUTHOR_ID).orderBy(PRICE.desc()).as("n")).from(BOOK).orderBy(AUTHOR_ID, field(name("n"))).fetch());
        Cases.run("seek", () -> sql.select(ID, TITLE).from(BOOK).orderBy(AUTHOR_ID, ID).seek(val(3), val(50)).limit(5).fetch());
        Cases.run("upsert", () -> sql.insertInto(AUTHOR, field(name("name"), String.class)).values("Author 1").onConflict(field(name("name")))
            .doUpdate().set(field(name("name"), String.class), "Author one").returning().fetch());
        Cases.run("update, delete, returning", () -> sql.update(BOOK).set(PRICE, PRICE.add(BigDecimal.ONE)).where(PRICE.gt(new BigDecimal(90))).returning(ID, PRICE).fetch().sortAsc(0)
            + " " + sql.deleteFrom(AUTHOR).where(ID.eq(3)).execute() + " " + sql.fetchCount(BOOK));
        Cases.run("nested transactions", () -> {
            sql.transaction(outer -> {
                using(outer).deleteFrom(BOOK).where(ID.eq(1)).execute();
                try {
                    using(outer).transaction(inner -> {
                        using(inner).deleteFrom(BOOK).execute();
                        throw new IllegalStateException("back");
                    });
                } catch (IllegalStateException e) {
                    using(outer).deleteFrom(BOOK).where(ID.eq(2)).execute();
                }
            });
            return sql.fetchCount(BOOK);
        });
        Cases.run("batch", () -> {
            int[] counts = sql.batch(sql.update(BOOK).set(PRICE, (BigDecimal) null).where(ID.eq((Integer) null)))
                .bind(new BigDecimal(1), 4).bind(new BigDecimal(2), 5).execute();
            return java.util.Arrays.toString(counts);
        });
    }

    public static void main(String[] arguments) throws Exception {
        System.setProperty("org.jooq.no-logo", "true");
        System.setProperty("org.jooq.no-tips", "true");
        try (Connection connection = Cases.connect()) {
            DSLContext sql = using(connection, SQLDialect.POSTGRES);
            tables(sql);
            statements(sql);
            reflection(sql, connection);
        }
    }
}
