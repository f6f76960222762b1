-- What BenchmarkSQL's build does, in its order and with its names: tables, rows, keys, indexes,
-- foreign keys, the sequence.
CREATE TABLE bmsql_config (cfg_name varchar(30) PRIMARY KEY, cfg_value varchar(50));
CREATE TABLE bmsql_warehouse (w_id integer NOT NULL, w_ytd decimal(12,2), w_tax decimal(4,4), w_name varchar(10), w_street_1 varchar(20),
    w_street_2 varchar(20), w_city varchar(20), w_state char(2), w_zip char(9)) WITH (fillfactor = 50);
CREATE TABLE bmsql_district (d_w_id integer NOT NULL, d_id integer NOT NULL, d_ytd decimal(12,2), d_tax decimal(4,4), d_next_o_id integer,
    d_name varchar(10), d_street_1 varchar(20), d_street_2 varchar(20), d_city varchar(20), d_state char(2), d_zip char(9));
CREATE TABLE bmsql_customer (c_w_id integer NOT NULL, c_d_id integer NOT NULL, c_id integer NOT NULL, c_discount decimal(4,4), c_credit char(2),
    c_last varchar(16), c_first varchar(16), c_credit_lim decimal(12,2), c_balance decimal(12,2), c_ytd_payment decimal(12,2),
    c_payment_cnt integer, c_delivery_cnt integer, c_street_1 varchar(20), c_street_2 varchar(20), c_city varchar(20), c_state char(2),
    c_zip char(9), c_phone char(16), c_since timestamp, c_middle char(2), c_data varchar(500));
CREATE SEQUENCE bmsql_hist_id_seq;
CREATE TABLE bmsql_history (hist_id integer, h_c_id integer, h_c_d_id integer, h_c_w_id integer, h_d_id integer, h_w_id integer,
    h_date timestamp, h_amount decimal(6,2), h_data varchar(24));
CREATE TABLE bmsql_new_order (no_w_id integer NOT NULL, no_d_id integer NOT NULL, no_o_id integer NOT NULL);
CREATE TABLE bmsql_oorder (o_w_id integer NOT NULL, o_d_id integer NOT NULL, o_id integer NOT NULL, o_c_id integer, o_carrier_id integer,
    o_ol_cnt integer, o_all_local integer, o_entry_d timestamp);
CREATE TABLE bmsql_order_line (ol_w_id integer NOT NULL, ol_d_id integer NOT NULL, ol_o_id integer NOT NULL, ol_number integer NOT NULL,
    ol_i_id integer NOT NULL, ol_delivery_d timestamp, ol_amount decimal(6,2), ol_supply_w_id integer, ol_quantity integer, ol_dist_info char(24));
CREATE TABLE bmsql_item (i_id integer NOT NULL, i_name varchar(24), i_price decimal(5,2), i_data varchar(50), i_im_id integer);
CREATE TABLE bmsql_stock (s_w_id integer NOT NULL, s_i_id integer NOT NULL, s_quantity integer, s_ytd integer, s_order_cnt integer,
    s_remote_cnt integer, s_data varchar(50), s_dist_01 char(24), s_dist_02 char(24), s_dist_03 char(24), s_dist_04 char(24),
    s_dist_05 char(24), s_dist_06 char(24), s_dist_07 char(24), s_dist_08 char(24), s_dist_09 char(24), s_dist_10 char(24));

BEGIN;
INSERT INTO bmsql_config VALUES ('warehouses', '2'), ('nURandCLast', '173');
INSERT INTO bmsql_item SELECT i, 'item ' || i, 1 + i % 99, 'data ' || i, i % 1000 FROM generate_series(1, 1000) i;
INSERT INTO bmsql_warehouse SELECT w, 300000, 0.1, 'w' || w, 's1', 's2', 'city', 'ST', '123411111' FROM generate_series(1, 2) w;
INSERT INTO bmsql_stock SELECT w, i, 10 + i % 90, 0, 0, 0, 'stock ' || i, 'd01', 'd02', 'd03', 'd04', 'd05', 'd06', 'd07', 'd08', 'd09', 'd10'
    FROM generate_series(1, 2) w, generate_series(1, 1000) i;
INSERT INTO bmsql_district SELECT w, d, 30000, 0.05, 31, 'd' || d, 's1', 's2', 'city', 'ST', '123411111' FROM generate_series(1, 2) w, generate_series(1, 10) d;
INSERT INTO bmsql_customer SELECT w, d, c, 0.1, CASE c % 10 WHEN 0 THEN 'BC' ELSE 'GC' END, 'NAME' || c % 9, 'first ' || c, 50000, -10, 10, 1, 0,
    's1', 's2', 'city', 'ST', '123411111', '0123456789012345', timestamp '2026-01-01', 'OE', repeat('data ', 60)
    FROM generate_series(1, 2) w, generate_series(1, 10) d, generate_series(1, 30) c;
INSERT INTO bmsql_history SELECT nextval('bmsql_hist_id_seq'), c_id, c_d_id, c_w_id, c_d_id, c_w_id, c_since, 10, 'history' FROM bmsql_customer;
INSERT INTO bmsql_oorder SELECT c_w_id, c_d_id, c_id, 31 - c_id, CASE WHEN c_id < 21 THEN 1 + c_id % 10 END, 5 + c_id % 11, 1, c_since FROM bmsql_customer;
INSERT INTO bmsql_order_line SELECT o_w_id, o_d_id, o_id, n, 1 + (o_id * 37 + n * 11) % 1000, CASE WHEN o_id < 21 THEN o_entry_d END, n, o_w_id, 5, 'dist'
    FROM bmsql_oorder, generate_series(1, o_ol_cnt) n;
INSERT INTO bmsql_new_order SELECT o_w_id, o_d_id, o_id FROM bmsql_oorder WHERE o_id >= 21;
COMMIT;

ALTER TABLE bmsql_warehouse ADD CONSTRAINT bmsql_warehouse_pkey PRIMARY KEY (w_id);
ALTER TABLE bmsql_district ADD CONSTRAINT bmsql_district_pkey PRIMARY KEY (d_w_id, d_id);
ALTER TABLE bmsql_customer ADD CONSTRAINT bmsql_customer_pkey PRIMARY KEY (c_w_id, c_d_id, c_id);
CREATE INDEX bmsql_customer_idx1 ON bmsql_customer (c_w_id, c_d_id, c_last, c_first);
ALTER TABLE bmsql_oorder ADD CONSTRAINT bmsql_oorder_pkey PRIMARY KEY (o_w_id, o_d_id, o_id);
CREATE UNIQUE INDEX bmsql_oorder_idx1 ON bmsql_oorder (o_w_id, o_d_id, o_carrier_id, o_id);
ALTER TABLE bmsql_new_order ADD CONSTRAINT bmsql_new_order_pkey PRIMARY KEY (no_w_id, no_d_id, no_o_id);
ALTER TABLE bmsql_order_line ADD CONSTRAINT bmsql_order_line_pkey PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number);
ALTER TABLE bmsql_stock ADD CONSTRAINT bmsql_stock_pkey PRIMARY KEY (s_w_id, s_i_id);
ALTER TABLE bmsql_item ADD CONSTRAINT bmsql_item_pkey PRIMARY KEY (i_id);

ALTER TABLE bmsql_district ADD CONSTRAINT d_warehouse_fkey FOREIGN KEY (d_w_id) REFERENCES bmsql_warehouse (w_id);
ALTER TABLE bmsql_customer ADD CONSTRAINT c_district_fkey FOREIGN KEY (c_w_id, c_d_id) REFERENCES bmsql_district (d_w_id, d_id);
ALTER TABLE bmsql_history ADD CONSTRAINT h_customer_fkey FOREIGN KEY (h_c_w_id, h_c_d_id, h_c_id) REFERENCES bmsql_customer (c_w_id, c_d_id, c_id);
ALTER TABLE bmsql_history ADD CONSTRAINT h_district_fkey FOREIGN KEY (h_w_id, h_d_id) REFERENCES bmsql_district (d_w_id, d_id);
ALTER TABLE bmsql_new_order ADD CONSTRAINT no_order_fkey FOREIGN KEY (no_w_id, no_d_id, no_o_id) REFERENCES bmsql_oorder (o_w_id, o_d_id, o_id);
ALTER TABLE bmsql_oorder ADD CONSTRAINT o_customer_fkey FOREIGN KEY (o_w_id, o_d_id, o_c_id) REFERENCES bmsql_customer (c_w_id, c_d_id, c_id);
ALTER TABLE bmsql_order_line ADD CONSTRAINT ol_order_fkey FOREIGN KEY (ol_w_id, ol_d_id, ol_o_id) REFERENCES bmsql_oorder (o_w_id, o_d_id, o_id);
ALTER TABLE bmsql_order_line ADD CONSTRAINT ol_stock_fkey FOREIGN KEY (ol_supply_w_id, ol_i_id) REFERENCES bmsql_stock (s_w_id, s_i_id);
ALTER TABLE bmsql_stock ADD CONSTRAINT s_warehouse_fkey FOREIGN KEY (s_w_id) REFERENCES bmsql_warehouse (w_id);
ALTER TABLE bmsql_stock ADD CONSTRAINT s_item_fkey FOREIGN KEY (s_i_id) REFERENCES bmsql_item (i_id);

SELECT setval('bmsql_hist_id_seq', (SELECT max(hist_id) FROM bmsql_history), true);
ALTER TABLE bmsql_history ALTER COLUMN hist_id SET DEFAULT nextval('bmsql_hist_id_seq');
ALTER TABLE bmsql_history ADD PRIMARY KEY (hist_id);
