-- By parallel workers, heap and MOT rows in one snapshot, which the workers of a standby have from its leader.
BEGIN;
SET LOCAL parallel_setup_cost = 0;
SET LOCAL parallel_tuple_cost = 0;
SET LOCAL min_parallel_table_scan_size = 0;
SET LOCAL cpu_operator_cost = 1;
SELECT 1 / ((SELECT sum(balance) FROM account_heap WHERE balance % 1 = 0) + (SELECT sum(balance) FROM account_mot WHERE balance % 1 = 0) = 800000)::int;
SELECT 1 / ((SELECT count(*) FROM twin_heap WHERE k + changes IS NOT NULL) = (SELECT count(*) FROM twin_mot WHERE k + changes IS NOT NULL))::int;
END;
