// The block of docs/clients.md, called as run asks for.  Prints "done", or "refused" and the SQLSTATE.
import java.sql.*;

class Client {
// BLOCK

    static void write(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.executeUpdate("UPDATE batch SET state = 'settled' WHERE batch_id = 9921");
        }
    }

    static void guarded(Connection connection, long token) throws SQLException {
        try (PreparedStatement update = connection.prepareStatement("SELECT lockfence.guarded_update('batch', ?::jsonb, ?::jsonb, ?)")) {
            update.setString(1, "{\"batch_id\": 9921}");
            update.setString(2, "{\"state\": \"settled\"}");
            update.setLong(3, token);
            update.execute();
        }
    }

    public static void main(String[] args) throws SQLException {
        String url = "jdbc:postgresql://127.0.0.1:" + System.getenv("PGPORT") + "/" + System.getenv("PGDATABASE");
        long token = Long.parseLong(args[1]);
        System.setProperty("user.name", System.getenv("PGUSER"));
        try (Connection connection = args[0].equals("granted") ? connectGranted(url, token) : DriverManager.getConnection(url)) {
            System.out.println(call(connection, args[0], token));
        }
    }

    static String call(Connection connection, String what, long token) throws SQLException {
        try {
            switch (what) {
                case "takeover": takeOver(connection, token); break;
                case "settle": settle(connection, token); break;
                case "guarded": guarded(connection, token); break;
                default: write(connection);
            }
            return "done";
        } catch (SQLException e) {
            try (Statement statement = connection.createStatement()) {
                statement.execute("SELECT 1");
            }
            return "refused " + e.getSQLState();
        }
    }
}
