//! How large a loaded database is and which constants it was loaded with: the contents of
//! `bmsql_config`.

use crate::failure::{Failure, Result};
use crate::random::NurandConstants;
use serde::{Deserialize, Serialize};

/// Districts per warehouse, fixed by TPC-C.
pub const DISTRICTS: i32 = 10;

/// Sizes of the tables. TPC-C's own are the defaults; smaller ones serve tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scale {
    /// Number of warehouses.
    pub warehouses: i32,
    /// Rows of `bmsql_item`, and of `bmsql_stock` per warehouse.
    pub items: i32,
    /// Customers per district, and orders per district after the load.
    pub customers: i32,
}

impl Scale {
    /// TPC-C's own sizes for `warehouses` warehouses.
    pub fn full(warehouses: i32) -> Self {
        Scale {
            warehouses,
            items: 100_000,
            customers: 3000,
        }
    }

    /// Orders per district that the load leaves undelivered: 900 of 3000.
    pub fn undelivered(&self) -> i32 {
        self.customers * 3 / 10
    }

    /// Orders per district that the load leaves delivered: 2100 of 3000.
    pub fn delivered(&self) -> i32 {
        self.customers - self.undelivered()
    }
}

/// What `bmsql_config` says of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadedConfig {
    /// The sizes.
    pub scale: Scale,
    /// The constants the data was made with.
    pub constants: NurandConstants,
    /// `C_DELIVERY_CNT` of every customer after the load: 0 by the specification, 1 by
    /// BenchmarkSQL.
    pub first_delivery_count: i32,
}

impl LoadedConfig {
    /// Rows for `bmsql_config`; the first four are BenchmarkSQL's own.
    pub fn entries(&self) -> [(&'static str, i32); 7] {
        [
            ("warehouses", self.scale.warehouses),
            ("nURandCLast", self.constants.c_last),
            ("nURandCC_ID", self.constants.c_id),
            ("nURandCI_ID", self.constants.i_id),
            ("tpccItems", self.scale.items),
            ("tpccCustomers", self.scale.customers),
            ("tpccFirstDeliveryCnt", self.first_delivery_count),
        ]
    }

    /// Reads `bmsql_config`. A database that BenchmarkSQL loaded lacks the last three entries and
    /// has TPC-C's own sizes.
    pub fn read(client: &mut postgres::Client) -> Result<Self> {
        let rows = client
            .query("SELECT cfg_name, cfg_value FROM bmsql_config", &[])
            .map_err(|error| Failure::unexpected(format!("bmsql_config: {error:?}")))?;
        let mut found = LoadedConfig {
            scale: Scale::full(0),
            constants: NurandConstants {
                c_last: 0,
                c_id: 0,
                i_id: 0,
            },
            first_delivery_count: 1,
        };
        for row in rows {
            let (name, value): (String, String) = (row.get(0), row.get(1));
            let value: i32 = value
                .parse()
                .map_err(|_| Failure::unexpected(format!("bmsql_config: {name} is {value}")))?;
            match name.as_str() {
                "warehouses" => found.scale.warehouses = value,
                "nURandCLast" => found.constants.c_last = value,
                "nURandCC_ID" => found.constants.c_id = value,
                "nURandCI_ID" => found.constants.i_id = value,
                "tpccItems" => found.scale.items = value,
                "tpccCustomers" => found.scale.customers = value,
                "tpccFirstDeliveryCnt" => found.first_delivery_count = value,
                _ => {}
            }
        }
        if found.scale.warehouses < 1 {
            return Err(Failure::unexpected(
                "bmsql_config names no warehouses: load first",
            ));
        }
        Ok(found)
    }
}
