import java.io.ByteArrayOutputStream;
import java.io.StringReader;
import java.math.BigDecimal;
import java.sql.Array;
import java.sql.BatchUpdateException;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Savepoint;
import java.sql.Statement;
import java.sql.Timestamp;
import java.sql.Types;
import java.time.LocalDate;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.Arrays;
import java.util.Properties;
import java.util.UUID;
import org.postgresql.PGConnection;
import org.postgresql.util.PGobject;
import org.postgresql.xa.PGXADataSource;

/** The ways in which programs use the driver, with each of its modes of sending queries. */
final class Main {
    private static Connection connection;

    interface Sql {
        Object run() throws Exception;
    }

    private static String execute(String... statements) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            StringBuilder counts = new StringBuilder();
            for (String sql : statements) {
                counts.append(statement.execute(sql) ? "rows" : statement.getUpdateCount()).append(' ');
            }
            return counts.toString();
        }
    }

    private static String failure(Sql body) throws Exception {
        try {
            return "no failure: " + body.run();
        } catch (BatchUpdateException e) {
            return e.getSQLState() + " " + e.getMessage() + " " + Arrays.toString(e.getUpdateCounts());
        } catch (SQLException e) {
            return e.getSQLState() + " " + e.getMessage();
        }
    }

    private static void tables() throws Exception {
        Cases.run("tables", () -> execute(
            "DROP TABLE IF EXISTS item, box",
            "DROP TYPE IF EXISTS size",
            "CREATE TYPE size AS ENUM ('small', 'large')",
            "CREATE TABLE box (id serial PRIMARY KEY, label text NOT NULL UNIQUE, size size NOT NULL DEFAULT 'small')",
            "CREATE TABLE item (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, box int NOT NULL REFERENCES box ON DELETE CASCADE,"
                + " a_bool bool, an_int int, a_long bigint, a_double float8, a_money numeric(12,2), a_text text, some_bytes bytea,"
                + " a_date date, a_time timestamptz, a_uuid uuid, an_array int[], a_json jsonb, UNIQUE (box, an_int))",
            "CREATE INDEX item_text ON item (lower(a_text)) WHERE a_bool"));
    }

    private static void metadata() throws Exception {
        DatabaseMetaData data = connection.getMetaData();
        Cases.run("metadata: tables", () -> Cases.rows(data.getTables(null, "public", "%", new String[] {"TABLE", "VIEW", "SEQUENCE", "INDEX"})));
        Cases.run("metadata: types of tables", () -> Cases.rows(data.getTables(null, "public", "item", null)));
        Cases.run("metadata: columns", () -> Cases.rows(data.getColumns(null, "public", "item", null)));
        Cases.run("metadata: primary keys", () -> Cases.rows(data.getPrimaryKeys(null, "public", "item")));
        Cases.run("metadata: imported keys", () -> Cases.rows(data.getImportedKeys(null, "public", "item")));
        Cases.run("metadata: exported keys", () -> Cases.rows(data.getExportedKeys(null, "public", "box")));
        Cases.run("metadata: unique indexes", () -> Cases.rows(data.getIndexInfo(null, "public", "item", true, true))
            // Estimates of rows and pages.
            .replaceAll(", \\d+, \\d+, null, null\\]", "]"));
        Cases.run("metadata: best row identifier", () -> Cases.rows(data.getBestRowIdentifier(null, "public", "item", 1, true)));
        Cases.run("metadata: privileges", () -> Cases.rows(data.getTablePrivileges(null, "public", "item")));
        Cases.run("metadata: version columns", () -> Cases.rows(data.getVersionColumns(null, "public", "item")));
    }

    private static void statements(String mode) throws Exception {
        Cases.run(mode + ": generated keys", () -> {
            StringBuilder keys = new StringBuilder();
            try (PreparedStatement insert = connection.prepareStatement("INSERT INTO box (label, size) VALUES (?, ?::size)", Statement.RETURN_GENERATED_KEYS)) {
                for (String label : new String[] {"first", "second", "third"}) {
                    insert.setString(1, label);
                    insert.setString(2, "large");
                    keys.append(insert.executeUpdate());
                    keys.append(Cases.rows(insert.getGeneratedKeys()));
                }
            }
            return keys;
        });
        Cases.run(mode + ": every type, prepared, often enough to be named", () -> {
            try (PreparedStatement insert = connection.prepareStatement("INSERT INTO item (box, a_bool, an_int, a_long, a_double, a_money, a_text,"
                    + " some_bytes, a_date, a_time, a_uuid, an_array, a_json) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")) {
                for (int i = 0; i < 20; i++) {
                    PGobject json = new PGobject();
                    json.setType("jsonb");
                    json.setValue("{\"i\": " + i + "}");
                    Array array = connection.createArrayOf("int4", new Integer[] {i, null, i * 2});
                    insert.setInt(1, 1 + i % 3);
                    insert.setBoolean(2, i % 2 == 0);
                    insert.setInt(3, i);
                    insert.setLong(4, 1L << i);
                    insert.setDouble(5, i / 3.0);
                    insert.setBigDecimal(6, new BigDecimal(i).movePointLeft(2));
                    insert.setString(7, "Text \u00e4 " + i);
                    insert.setBytes(8, new byte[] {0, (byte) i, -1});
                    insert.setObject(9, LocalDate.of(2026, 1, 1 + i));
                    insert.setObject(10, OffsetDateTime.of(2026, 1, 1, i, 0, 0, 0, ZoneOffset.UTC));
                    insert.setObject(11, new UUID(i, i));
                    insert.setArray(12, array);
                    insert.setObject(13, json);
                    insert.executeUpdate();
                }
                insert.setInt(1, 1);
                for (int i = 2; i <= 13; i++) {
                    insert.setNull(i, Types.OTHER);
                }
                return failure(insert::executeUpdate) + Cases.rows(connection, "SELECT * FROM item ORDER BY id");
            }
        });
        Cases.run(mode + ": reads by key, range and expression", () -> {
            StringBuilder found = new StringBuilder();
            try (PreparedStatement select = connection.prepareStatement("SELECT * FROM item WHERE box = ? AND an_int BETWEEN ? AND ? ORDER BY an_int DESC");
                    PreparedStatement lower = connection.prepareStatement("SELECT id FROM item WHERE a_bool AND lower(a_text) = ?")) {
                for (int i = 0; i < 12; i++) {
                    select.setInt(1, 1 + i % 3);
                    select.setInt(2, i);
                    select.setInt(3, i + 5);
                    found.append(Cases.rows(select.executeQuery()));
                    lower.setString(1, "text \u00e4 " + i);
                    found.append(Cases.rows(lower.executeQuery()));
                }
            }
            return found;
        });
        Cases.run(mode + ": batch", () -> {
            try (PreparedStatement update = connection.prepareStatement("UPDATE item SET a_money = a_money + ? WHERE an_int = ?")) {
                for (int i = 0; i < 25; i++) {
                    update.setBigDecimal(1, BigDecimal.ONE);
                    update.setInt(2, i);
                    update.addBatch();
                }
                return Arrays.toString(update.executeBatch());
            }
        });
        Cases.run(mode + ": batch that fails half-way", () -> failure(() -> {
            try (PreparedStatement insert = connection.prepareStatement("INSERT INTO box (label) VALUES (?)")) {
                for (String label : new String[] {"fourth", "first", "fifth"}) {
                    insert.setString(1, label);
                    insert.addBatch();
                }
                return Arrays.toString(insert.executeBatch());
            }
        }));
        Cases.run(mode + ": what a failed batch leaves", () -> Cases.rows(connection, "SELECT label FROM box ORDER BY id"));
        Cases.run(mode + ": errors", () -> failure(() -> execute("INSERT INTO box (label) VALUES ('first')"))
            + failure(() -> execute("INSERT INTO item (box) VALUES (1000)"))
            + failure(() -> execute("INSERT INTO box (label) VALUES (NULL)"))
            + failure(() -> execute("UPDATE item SET an_int = 3, box = 1 WHERE an_int = 6")));
        Cases.run(mode + ": upsert", () -> {
            StringBuilder rows = new StringBuilder();
            try (PreparedStatement upsert = connection.prepareStatement(
                    "INSERT INTO box (label) VALUES (?) ON CONFLICT (label) DO UPDATE SET size = 'large' RETURNING label, size")) {
                for (int i = 0; i < 8; i++) {
                    upsert.setString(1, i % 2 == 0 ? "first" : "new " + i);
                    rows.append(Cases.rows(upsert.executeQuery()));
                }
            }
            return rows;
        });
        Cases.run(mode + ": cursor by fetch size", () -> {
            connection.setAutoCommit(false);
            try (Statement statement = connection.createStatement()) {
                statement.setFetchSize(3);
                return Cases.rows(statement.executeQuery("SELECT id, a_text FROM item ORDER BY id"));
            } finally {
                connection.rollback();
                connection.setAutoCommit(true);
            }
        });
        Cases.run(mode + ": updatable result set", () -> {
            try (Statement statement = connection.createStatement(ResultSet.TYPE_SCROLL_INSENSITIVE, ResultSet.CONCUR_UPDATABLE);
                    ResultSet rows = statement.executeQuery("SELECT id, label FROM box ORDER BY id")) {
                rows.absolute(2);
                rows.updateString("label", "second again");
                rows.updateRow();
                rows.last();
                rows.deleteRow();
                rows.moveToInsertRow();
                rows.updateInt("id", 1000);
                rows.updateString("label", "inserted");
                rows.insertRow();
                rows.first();
                rows.refreshRow();
                return rows.getString(2) + Cases.rows(connection, "SELECT id, label FROM box ORDER BY id");
            }
        });
        Cases.run(mode + ": savepoints", () -> {
            connection.setAutoCommit(false);
            try {
                execute("UPDATE box SET label = label || '!'");
                Savepoint savepoint = connection.setSavepoint("one");
                execute("DELETE FROM box");
                String failed = failure(() -> execute("INSERT INTO item (box) VALUES (1)"));
                connection.rollback(savepoint);
                execute("DELETE FROM item WHERE an_int = 1");
                connection.commit();
                return failed + Cases.rows(connection, "SELECT label, (SELECT count(*) FROM item WHERE box = box.id) FROM box ORDER BY id");
            } finally {
                connection.setAutoCommit(true);
            }
        });
        Cases.run(mode + ": several statements at once", () -> execute("SELECT 1; UPDATE item SET a_long = 1 WHERE an_int < 5; DELETE FROM item WHERE an_int = 2"));
        Cases.run(mode + ": plans kept over changes of tables", () -> {
            try (PreparedStatement select = connection.prepareStatement("SELECT * FROM box WHERE id = ?")) {
                StringBuilder rows = new StringBuilder();
                for (int i = 0; i < 14; i++) {
                    if (i == 7) {
                        execute("ALTER TABLE box ADD COLUMN more int DEFAULT 7");
                    }
                    select.setInt(1, 1);
                    rows.append(Cases.rows(select.executeQuery()));
                }
                return rows + execute("ALTER TABLE box DROP COLUMN more");
            }
        });
    }

    private static void copy() throws Exception {
        Cases.run("COPY in and out", () -> {
            var copies = connection.unwrap(PGConnection.class).getCopyAPI();
            StringBuilder rows = new StringBuilder();
            for (int i = 0; i < 2000; i++) {
                rows.append(2000 + i).append("\tcopied ").append(i).append("\tsmall\n");
            }
            long count = copies.copyIn("COPY box FROM STDIN", new StringReader(rows.toString()));
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            copies.copyOut("COPY (SELECT * FROM box ORDER BY id) TO STDOUT (FORMAT csv)", out);
            return count + out.toString();
        });
        Cases.run("COPY that fails", () -> failure(() ->
            connection.unwrap(PGConnection.class).getCopyAPI().copyIn("COPY box FROM STDIN", new StringReader("5000\tx\tsmall\n5001\tx\tsmall\n")))
            + Cases.rows(connection, "SELECT count(*) FROM box WHERE id >= 5000"));
    }

    private static void twoPhases() throws Exception {
        Cases.run("two-phase commit", () -> {
            PGXADataSource source = new PGXADataSource();
            source.setUrl(Cases.URL);
            source.setUser(Cases.USER);
            var xa = source.getXAConnection();
            var resource = xa.getXAResource();
            StringBuilder told = new StringBuilder();
            for (int i = 0; i < 2; i++) {
                byte number = (byte) i;
                javax.transaction.xa.Xid xid = new javax.transaction.xa.Xid() {
                    @Override
                    public int getFormatId() {
                        return 1;
                    }

                    @Override
                    public byte[] getGlobalTransactionId() {
                        return new byte[] {number};
                    }

                    @Override
                    public byte[] getBranchQualifier() {
                        return new byte[] {1};
                    }
                };
                resource.start(xid, javax.transaction.xa.XAResource.TMNOFLAGS);
                try (Statement statement = xa.getConnection().createStatement()) {
                    statement.execute("UPDATE box SET label = label || ' xa' WHERE id = " + (i + 1));
                }
                resource.end(xid, javax.transaction.xa.XAResource.TMSUCCESS);
                told.append(resource.prepare(xid)).append(resource.recover(javax.transaction.xa.XAResource.TMSTARTRSCAN).length);
                if (i == 0) {
                    resource.commit(xid, false);
                } else {
                    resource.rollback(xid);
                }
            }
            xa.close();
            return told + Cases.rows(connection, "SELECT label FROM box WHERE id < 3 ORDER BY id");
        });
    }

    public static void main(String[] arguments) throws Exception {
        for (String mode : new String[] {"simple", "extended", "extendedForPrepared", "extendedCacheEverything"}) {
            Properties properties = new Properties();
            properties.setProperty("user", Cases.USER);
            properties.setProperty("preferQueryMode", mode);
            properties.setProperty("prepareThreshold", "3");
            connection = java.sql.DriverManager.getConnection(Cases.URL, properties);
            tables();
            statements(mode);
            connection.close();
        }
        connection = Cases.connect();
        metadata();
        copy();
        twoPhases();
        connection.close();
    }
}
