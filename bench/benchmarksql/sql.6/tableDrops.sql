-- Undoes tableCreates.sql.

DROP FOREIGN TABLE bmsql_config;
DROP FOREIGN TABLE bmsql_warehouse;
DROP FOREIGN TABLE bmsql_district;
DROP FOREIGN TABLE bmsql_customer;
DROP FOREIGN TABLE bmsql_history;
DROP FOREIGN TABLE bmsql_new_order;
DROP FOREIGN TABLE bmsql_oorder;
DROP FOREIGN TABLE bmsql_order_line;
DROP FOREIGN TABLE bmsql_item;
DROP FOREIGN TABLE bmsql_stock;
