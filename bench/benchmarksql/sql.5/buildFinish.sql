-- A VACUUM of the whole database passes foreign tables by; statistics are asked for by name.

ANALYZE bmsql_config;
ANALYZE bmsql_warehouse;
ANALYZE bmsql_district;
ANALYZE bmsql_customer;
ANALYZE bmsql_history;
ANALYZE bmsql_new_order;
ANALYZE bmsql_oorder;
ANALYZE bmsql_order_line;
ANALYZE bmsql_item;
ANALYZE bmsql_stock;
