import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Arrays;
import java.util.concurrent.Callable;

/**
 * Cases of a program: each has a result, which must be the same on heap and on memory-optimized
 * tables.
 */
final class Cases {
    static final String URL = System.getenv("JDBC_URL");
    static final String USER = System.getenv("PGUSER");
    private static final Path FILE = Path.of(System.getenv("OUT"), "cases.jsonl");

    private Cases() {}

    /** Runs one case and writes its line; a failure does not stop the ones behind it. */
    static void run(String name, Callable<Object> body) throws Exception {
        String line;
        try {
            line = line(name, "passed", "result", String.valueOf(body.call()));
        } catch (Exception | LinkageError | AssertionError e) {
            StringBuilder message = new StringBuilder();
            for (Throwable cause = e; cause != null; cause = cause.getCause()) {
                message.append(cause).append('\n');
            }
            line = line(name, "failed", "message", message.toString());
            e.printStackTrace();
        }
        Files.writeString(FILE, line, StandardCharsets.UTF_8, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
    }

    private static String line(String name, String status, String key, String text) {
        return "{\"case\": " + quoted(name) + ", \"status\": \"" + status + "\", \"" + key + "\": " + quoted(text) + "}\n";
    }

    private static String quoted(String text) {
        StringBuilder quoted = new StringBuilder("\"");
        for (char c : text.toCharArray()) {
            if (c == '"' || c == '\\') {
                quoted.append('\\').append(c);
            } else if (c < ' ') {
                quoted.append(String.format("\\u%04x", (int) c));
            } else {
                quoted.append(c);
            }
        }
        return quoted.append('"').toString();
    }

    static Connection connect() throws SQLException {
        return DriverManager.getConnection(URL, USER, "");
    }

    /** All rows of a query, as text. */
    static String rows(Connection connection, String sql) throws SQLException {
        try (Statement statement = connection.createStatement(); ResultSet result = statement.executeQuery(sql)) {
            return rows(result);
        }
    }

    static String rows(ResultSet result) throws SQLException {
        StringBuilder rows = new StringBuilder();
        int columns = result.getMetaData().getColumnCount();
        while (result.next()) {
            String[] row = new String[columns];
            for (int i = 0; i < columns; i++) {
                row[i] = result.getString(i + 1);
            }
            rows.append(Arrays.toString(row)).append('\n');
        }
        return rows.toString();
    }

    /**
     * The tables of `public` as a program sees them: columns, constraints and indexes, without the
     * access method's name.
     */
    static String schema() throws SQLException {
        try (Connection connection = connect()) {
            return rows(connection, "SELECT table_name, column_name, data_type, is_nullable, column_default"
                    + " FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1, ordinal_position")
                + rows(connection, "SELECT conrelid::regclass, conname, pg_get_constraintdef(oid) FROM pg_constraint"
                    + " WHERE connamespace = 'public'::regnamespace ORDER BY 1::text, 2")
                + rows(connection, "SELECT indexname, replace(indexdef, 'USING mot_index', 'USING btree') FROM pg_indexes"
                    + " WHERE schemaname = 'public' ORDER BY 1");
        }
    }
}
