-- The five transactions of TPC-C as functions: one call per transaction. They send the executor the
-- same statements as the interactive mode and are created in the schema of the tables; the caller's
-- search_path finds both.

CREATE FUNCTION tpcc_customer_by_name(p_w integer, p_d integer, p_last varchar)
RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    how_many integer;
    found_id integer;
BEGIN
    SELECT count(*) INTO how_many FROM bmsql_customer
        WHERE c_w_id = p_w AND c_d_id = p_d AND c_last = p_last;
    IF how_many = 0 THEN
        RAISE EXCEPTION 'no customer % in district %/%', p_last, p_w, p_d
            USING ERRCODE = 'no_data_found';
    END IF;
    -- The middle one, rounded up, in order of first names (clause 2.5.2.2).
    SELECT c_id INTO found_id FROM bmsql_customer
        WHERE c_w_id = p_w AND c_d_id = p_d AND c_last = p_last
        ORDER BY c_first OFFSET (how_many + 1) / 2 - 1 LIMIT 1;
    RETURN found_id;
END $$;

-- The lines come ordered by supplying warehouse and item, as the interactive mode locks them.
-- amount_total is the plain sum of the lines' amounts.
CREATE FUNCTION tpcc_new_order(
    p_w integer, p_d integer, p_c integer,
    p_number integer[], p_supply_w integer[], p_item integer[], p_quantity integer[],
    OUT o_id integer, OUT amount_total decimal(12,2), OUT price_total decimal(12,2),
    OUT customer_last varchar(16), OUT customer_credit char(2), OUT entry_date timestamp
) LANGUAGE plpgsql AS $$
DECLARE
    line_count integer := array_length(p_item, 1);
    all_local integer := 1;
    district_tax decimal(4,4);
    warehouse_tax decimal(4,4);
    discount decimal(4,4);
    item record;
    stock record;
    quantity integer;
    line_amount decimal(6,2);
    dist_info char(24);
BEGIN
    entry_date := localtimestamp;
    amount_total := 0;
    FOR i IN 1 .. line_count LOOP
        IF p_supply_w[i] <> p_w THEN
            all_local := 0;
        END IF;
    END LOOP;

    SELECT d_tax, d_next_o_id INTO district_tax, o_id FROM bmsql_district
        WHERE d_w_id = p_w AND d_id = p_d FOR UPDATE;
    SELECT w_tax, c_last, c_credit, c_discount
        INTO warehouse_tax, customer_last, customer_credit, discount
        FROM bmsql_customer JOIN bmsql_warehouse ON (w_id = c_w_id)
        WHERE c_w_id = p_w AND c_d_id = p_d AND c_id = p_c;
    UPDATE bmsql_district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = p_w AND d_id = p_d;
    INSERT INTO bmsql_oorder (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local)
        VALUES (o_id, p_d, p_w, p_c, entry_date, line_count, all_local);
    INSERT INTO bmsql_new_order (no_o_id, no_d_id, no_w_id) VALUES (o_id, p_d, p_w);

    FOR i IN 1 .. line_count LOOP
        SELECT i_price, i_name, i_data INTO item FROM bmsql_item WHERE i_id = p_item[i];
        IF NOT FOUND THEN
            RAISE EXCEPTION 'item number is not valid';
        END IF;
        SELECT s_quantity, s_data, s_dist_01, s_dist_02, s_dist_03, s_dist_04, s_dist_05,
               s_dist_06, s_dist_07, s_dist_08, s_dist_09, s_dist_10
            INTO stock FROM bmsql_stock
            WHERE s_w_id = p_supply_w[i] AND s_i_id = p_item[i] FOR UPDATE;
        quantity := p_quantity[i];
        line_amount := item.i_price * quantity;
        amount_total := amount_total + line_amount;
        UPDATE bmsql_stock SET
            s_quantity = CASE WHEN stock.s_quantity >= quantity + 10
                              THEN stock.s_quantity - quantity ELSE stock.s_quantity + 91 END,
            s_ytd = s_ytd + quantity,
            s_order_cnt = s_order_cnt + 1,
            s_remote_cnt = s_remote_cnt + CASE WHEN p_supply_w[i] <> p_w THEN 1 ELSE 0 END
            WHERE s_w_id = p_supply_w[i] AND s_i_id = p_item[i];
        dist_info := CASE p_d
            WHEN 1 THEN stock.s_dist_01 WHEN 2 THEN stock.s_dist_02
            WHEN 3 THEN stock.s_dist_03 WHEN 4 THEN stock.s_dist_04
            WHEN 5 THEN stock.s_dist_05 WHEN 6 THEN stock.s_dist_06
            WHEN 7 THEN stock.s_dist_07 WHEN 8 THEN stock.s_dist_08
            WHEN 9 THEN stock.s_dist_09 ELSE stock.s_dist_10 END;
        INSERT INTO bmsql_order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id,
                                      ol_supply_w_id, ol_quantity, ol_amount, ol_dist_info)
            VALUES (o_id, p_d, p_w, p_number[i], p_item[i],
                    p_supply_w[i], quantity, line_amount, dist_info);
    END LOOP;
    price_total := amount_total * (1 - discount) * (1 + warehouse_tax + district_tax);
END $$;

CREATE FUNCTION tpcc_payment(
    p_w integer, p_d integer, p_c_w integer, p_c_d integer, p_c integer, p_last varchar,
    p_amount decimal, p_tag varchar,
    OUT customer integer, OUT customer_first varchar(16), OUT customer_last varchar(16),
    OUT customer_credit char(2), OUT customer_credit_lim decimal(12,2),
    OUT customer_discount decimal(4,4), OUT customer_balance decimal(12,2),
    OUT customer_data varchar(500), OUT paid_at timestamp
) LANGUAGE plpgsql AS $$
DECLARE
    district record;
    warehouse record;
    person record;
BEGIN
    paid_at := localtimestamp;
    UPDATE bmsql_district SET d_ytd = d_ytd + p_amount WHERE d_w_id = p_w AND d_id = p_d;
    SELECT d_name, d_street_1, d_street_2, d_city, d_state, d_zip INTO district
        FROM bmsql_district WHERE d_w_id = p_w AND d_id = p_d;
    UPDATE bmsql_warehouse SET w_ytd = w_ytd + p_amount WHERE w_id = p_w;
    SELECT w_name, w_street_1, w_street_2, w_city, w_state, w_zip INTO warehouse
        FROM bmsql_warehouse WHERE w_id = p_w;

    customer := p_c;
    IF p_last IS NOT NULL THEN
        customer := tpcc_customer_by_name(p_c_w, p_c_d, p_last);
    END IF;
    SELECT c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone,
           c_since, c_credit, c_credit_lim, c_discount, c_balance INTO person
        FROM bmsql_customer WHERE c_w_id = p_c_w AND c_d_id = p_c_d AND c_id = customer FOR UPDATE;
    customer_first := person.c_first;
    customer_last := person.c_last;
    customer_credit := person.c_credit;
    customer_credit_lim := person.c_credit_lim;
    customer_discount := person.c_discount;
    customer_balance := person.c_balance - p_amount;

    IF customer_credit = 'GC' THEN
        UPDATE bmsql_customer SET c_balance = c_balance - p_amount,
            c_ytd_payment = c_ytd_payment + p_amount, c_payment_cnt = c_payment_cnt + 1
            WHERE c_w_id = p_c_w AND c_d_id = p_c_d AND c_id = customer;
    ELSE
        SELECT c_data INTO customer_data FROM bmsql_customer
            WHERE c_w_id = p_c_w AND c_d_id = p_c_d AND c_id = customer;
        customer_data := left(format('C_ID=%s C_D_ID=%s C_W_ID=%s D_ID=%s W_ID=%s H_AMOUNT=%s   %s',
            customer, p_c_d, p_c_w, p_d, p_w, p_amount, customer_data), 500);
        UPDATE bmsql_customer SET c_balance = c_balance - p_amount,
            c_ytd_payment = c_ytd_payment + p_amount, c_payment_cnt = c_payment_cnt + 1,
            c_data = customer_data
            WHERE c_w_id = p_c_w AND c_d_id = p_c_d AND c_id = customer;
    END IF;
    INSERT INTO bmsql_history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data)
        VALUES (customer, p_c_d, p_c_w, p_d, p_w, paid_at, p_amount,
                left(p_tag || ' ' || warehouse.w_name || '    ' || district.d_name, 24));
END $$;

CREATE FUNCTION tpcc_order_status(
    p_w integer, p_d integer, p_c integer, p_last varchar,
    OUT customer integer, OUT customer_first varchar(16), OUT customer_balance decimal(12,2),
    OUT last_order integer, OUT ordered_at timestamp, OUT carrier integer,
    OUT items integer[], OUT supply_w integer[], OUT quantities integer[],
    OUT amounts decimal(6,2)[], OUT delivered_at timestamp[]
) LANGUAGE plpgsql AS $$
DECLARE
    line record;
BEGIN
    customer := p_c;
    IF p_last IS NOT NULL THEN
        customer := tpcc_customer_by_name(p_w, p_d, p_last);
    END IF;
    SELECT c_first, c_balance INTO customer_first, customer_balance FROM bmsql_customer
        WHERE c_w_id = p_w AND c_d_id = p_d AND c_id = customer;
    SELECT o_id, o_entry_d, o_carrier_id INTO last_order, ordered_at, carrier FROM bmsql_oorder
        WHERE o_w_id = p_w AND o_d_id = p_d AND o_c_id = customer AND o_id = (
            SELECT max(o_id) FROM bmsql_oorder
                WHERE o_w_id = p_w AND o_d_id = p_d AND o_c_id = customer);
    FOR line IN SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d
            FROM bmsql_order_line WHERE ol_w_id = p_w AND ol_d_id = p_d AND ol_o_id = last_order
            ORDER BY ol_w_id, ol_d_id, ol_o_id, ol_number LOOP
        items := items || line.ol_i_id;
        supply_w := supply_w || line.ol_supply_w_id;
        quantities := quantities || line.ol_quantity;
        amounts := amounts || line.ol_amount;
        delivered_at := delivered_at || line.ol_delivery_d;
    END LOOP;
END $$;

-- Element d of each array is district d's order and its amount; null where nothing was undelivered.
CREATE FUNCTION tpcc_delivery(
    p_w integer, p_carrier integer, p_delivered_at timestamp,
    OUT orders integer[], OUT amounts decimal(12,2)[]
) LANGUAGE plpgsql AS $$
DECLARE
    oldest integer;
    customer integer;
    amount decimal(12,2);
BEGIN
    FOR district IN 1 .. 10 LOOP
        LOOP
            SELECT no_o_id INTO oldest FROM bmsql_new_order
                WHERE no_w_id = p_w AND no_d_id = district ORDER BY no_o_id ASC;
            EXIT WHEN NOT FOUND;
            DELETE FROM bmsql_new_order
                WHERE no_w_id = p_w AND no_d_id = district AND no_o_id = oldest;
            -- Not found: a delivery at the same time was faster, so the next one is the oldest.
            EXIT WHEN FOUND;
        END LOOP;
        IF oldest IS NULL THEN
            orders[district] := NULL;
            amounts[district] := NULL;
            CONTINUE;
        END IF;
        UPDATE bmsql_oorder SET o_carrier_id = p_carrier
            WHERE o_w_id = p_w AND o_d_id = district AND o_id = oldest;
        SELECT o_c_id INTO customer FROM bmsql_oorder
            WHERE o_w_id = p_w AND o_d_id = district AND o_id = oldest;
        UPDATE bmsql_order_line SET ol_delivery_d = p_delivered_at
            WHERE ol_w_id = p_w AND ol_d_id = district AND ol_o_id = oldest;
        SELECT sum(ol_amount) INTO amount FROM bmsql_order_line
            WHERE ol_w_id = p_w AND ol_d_id = district AND ol_o_id = oldest;
        UPDATE bmsql_customer SET c_balance = c_balance + amount,
            c_delivery_cnt = c_delivery_cnt + 1
            WHERE c_w_id = p_w AND c_d_id = district AND c_id = customer;
        orders[district] := oldest;
        amounts[district] := amount;
    END LOOP;
END $$;

CREATE FUNCTION tpcc_stock_level(p_w integer, p_d integer, p_threshold integer, OUT low integer)
LANGUAGE plpgsql AS $$
BEGIN
    SELECT count(*) INTO low FROM (
        SELECT s_w_id, s_i_id, s_quantity FROM bmsql_stock
            WHERE s_w_id = p_w AND s_quantity < p_threshold AND s_i_id IN (
                SELECT ol_i_id FROM bmsql_district JOIN bmsql_order_line ON ol_w_id = d_w_id
                    AND ol_d_id = d_id AND ol_o_id >= d_next_o_id - 20 AND ol_o_id < d_next_o_id
                    WHERE d_w_id = p_w AND d_id = p_d)) AS low_rows;
END $$;
